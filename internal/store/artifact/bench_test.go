package artifact

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// library returns a store with the metadata of many artifacts, without their contents.
func library(b *testing.B, size int) *Store {
	b.Helper()
	database := dbtest.OpenWith(b, dbtest.SQLite(b), db.Options{})
	blobs, err := cas.OpenDir(b.TempDir(), cas.DirOptions{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), database, blobs, Options{})
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for first := 0; first < size; first += 5000 {
		err := database.Write(b.Context(), func(tx *db.Tx) error {
			for i := first; i < first+5000; i++ {
				ref := cas.Sum(fmt.Append(nil, i))
				if _, err := s.record(b.Context(), tx, everything, ref, 100, detailsOf(random, i)); err != nil {
					return err
				}
				a, err := load(b.Context(), tx, everything, ref)
				if err != nil {
					return err
				}
				if err := s.words.put(b.Context(), tx, &a); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// detailsOf draws words so that some are frequent and most are rare.
func detailsOf(random *rand.Rand, i int) Details {
	word := func() string { return fmt.Sprintf("word%d", int(random.ExpFloat64()*200)) }
	d := Details{
		MIME: "text/x-lua", Name: word() + "_" + word(), Creator: fmt.Sprintf("agent%d", i%7),
		Tags:        []string{"type:lua", "mood:" + word(), fmt.Sprintf("set:%d", i/100)},
		Description: fmt.Sprintf("A script that does %s with %s and %s, in the manner of %s", word(), word(), word(), word()),
	}
	if i%10 != 0 {
		d.Parent = cas.Sum(fmt.Append(nil, i-1))
	}
	return d
}

func BenchmarkSearch100k(b *testing.B) {
	s := library(b, 100_000)
	for name, q := range map[string]Query{
		"newest":                         {},
		"tag of every artifact":          {Tags: []string{"type:lua"}},
		"tag of a few":                   {Tags: []string{"set:500"}},
		"creator":                        {Creator: "agent3"},
		"tag and creator":                {Tags: []string{"type:lua"}, Creator: "agent3"},
		"parent":                         {Parent: cas.Sum(fmt.Append(nil, 500))},
		"rare words":                     {Vibe: "word900 word800"},
		"usual words":                    {Vibe: "word50 with word70"},
		"word of every artifact":         {Vibe: "script"},
		"words and tag":                  {Vibe: "word3", Tags: []string{"set:500"}},
		"word of every artifact and tag": {Vibe: "script", Tags: []string{"type:lua"}, Creator: "agent3"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Search(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFind compares what it costs to find a content for its owner, who must be checked,
// with an administrator, who sees everything. It reports the ratio.
func BenchmarkFind(b *testing.B) {
	database := dbtest.OpenWith(b, dbtest.SQLite(b), db.Options{})
	blobs, err := cas.OpenDir(b.TempDir(), cas.DirOptions{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), database, blobs, Options{})
	if err != nil {
		b.Fatal(err)
	}
	owner := principal.With(b.Context(), principal.Principal{ID: "key:ada", Org: "acme"})
	var names []string
	for i := range 1000 {
		c, err := s.StoreContent(owner, strings.NewReader(fmt.Sprint(i)), "text/plain")
		if err != nil {
			b.Fatal(err)
		}
		names = append(names, c.Hash.String())
	}
	find := func(ctx context.Context, name string) time.Duration {
		began := time.Now()
		if _, err := s.Find(ctx, name); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var checked, free time.Duration
	for i := 0; b.Loop(); i++ {
		checked += find(owner, names[i%len(names)])
		free += find(b.Context(), names[i%len(names)])
	}
	b.ReportMetric(float64(checked)/float64(free), "checked/free")
}

// BenchmarkStorage compares what the check of a quota costs for an organisation with many
// contents with counting them. It reports the ratio.
func BenchmarkStorage(b *testing.B) {
	s := library(b, 0)
	err := s.db.Write(b.Context(), func(tx *db.Tx) error {
		for i := range 100_000 {
			err := s.own(b.Context(), tx, principal.Owner{ID: fmt.Sprintf("key:%d", i%10), Org: "acme"}, Content{Hash: cas.Sum(fmt.Append(nil, i)), Size: 100, MIME: "text/plain"})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	measure := func(f func(tx *db.Tx) (int64, error)) time.Duration {
		began := time.Now()
		err := s.db.Read(b.Context(), func(tx *db.Tx) error {
			if bytes, err := f(tx); err != nil || bytes != 10_000_000 {
				return fmt.Errorf("%d bytes: %w", bytes, err)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var read, counted time.Duration
	for b.Loop() {
		read += measure(func(tx *db.Tx) (bytes int64, err error) {
			bytes, _, err = storageOf(b.Context(), tx, "acme")
			return bytes, err
		})
		counted += measure(func(tx *db.Tx) (int64, error) { return countStorage(b.Context(), tx, "acme") })
	}
	b.ReportMetric(float64(read)/float64(counted), "read/counted")
	b.ReportMetric(float64(counted.Microseconds())/float64(b.N), "counted-us/op")
	b.ReportMetric(float64(read.Microseconds())/float64(b.N), "read-us/op")
}

// BenchmarkCollect measures a pass over many contents, none of which is removed.
func BenchmarkCollect(b *testing.B) {
	s := library(b, 0)
	err := s.db.Write(b.Context(), func(tx *db.Tx) error {
		for i := range 100_000 {
			err := s.own(b.Context(), tx, principal.Owner{ID: "key:one", Org: "acme"}, Content{Hash: cas.Sum(fmt.Append(nil, i)), Size: 100, MIME: "text/plain"})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if n, err := s.Collect(b.Context()); err != nil || n != 0 {
			b.Fatal(n, err)
		}
	}
}
