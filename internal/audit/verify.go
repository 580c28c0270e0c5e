package audit

import (
	"context"
	"fmt"
	"slices"
)

// Verified is what was found of one node's chain.
type Verified struct {
	Chain
	Entries  int64    `json:"entries"`
	Problems []string `json:"problems"` // the first few
}

// mostProblems bounds what is told of one chain.
const mostProblems = 20

// page is how many entries are looked at together.
const page = 1000

// Verify goes through every chain from where it was cut to its end and tells of
// entries that were changed, taken out or moved.
func (s *Store) Verify(ctx context.Context) ([]Verified, error) {
	chains, err := s.Chains(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Verified, 0, len(chains))
	for _, c := range chains {
		v := Verified{Chain: c, Problems: []string{}}
		if err := s.walk(ctx, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (s *Store) walk(ctx context.Context, v *Verified) error {
	last, hash := v.Cut, v.CutHash
	for {
		entries, err := s.Find(ctx, Filter{Node: v.Node, After: last, Limit: page})
		if err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			v.Entries++
			switch {
			case e.Seq != last+1:
				v.problem("entries %d to %d are missing", last+1, e.Seq-1)
			case e.Prev != hash:
				v.problem("entry %d does not follow entry %d: one of them was changed or moved", e.Seq, last)
			}
			if e.Hash != e.sum() {
				v.problem("entry %d was changed", e.Seq)
			}
			if last, hash = e.Seq, e.Hash; last == v.Seq && hash != v.Hash {
				v.problem("the chain does not end as was noted: its end was changed")
			}
		}
		if len(entries) < page {
			break
		}
	}
	switch {
	case last < v.Seq:
		v.problem("entries %d to %d are missing at the end", last+1, v.Seq)
	case v.Entries == 0 && hash != v.Hash:
		v.problem("the chain does not end as was noted: its end was changed")
	case last > v.Seq:
		return s.beyond(ctx, v, last)
	}
	return nil
}

// beyond looks at entries behind the end that was noted: those that were added
// while the others were looked at are noted by now.
func (s *Store) beyond(ctx context.Context, v *Verified, last int64) error {
	chains, err := s.Chains(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(chains, func(c Chain) bool { return c.Node == v.Node })
	if at < 0 || chains[at].Seq < last {
		v.problem("the chain does not end as was noted: its end was changed")
	}
	return nil
}

func (v *Verified) problem(format string, args ...any) {
	if len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}
