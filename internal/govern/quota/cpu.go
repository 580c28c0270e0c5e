package quota

import (
	"context"
	"time"
)

// cpuPortion is the smallest portion of CPU time that a node takes: shorter ones would be
// taken from the database too often towards the end of a quota.
const cpuPortion = 10 * time.Millisecond

// unit is how many counted units one unit of the configuration has.
func (a account) unit() int64 {
	if a.kind == CPU {
		return int64(time.Second)
	}
	return 1
}

// Counts tells whether the CPU time of an organisation's scripts is limited.
func (o *Orgs) Counts(org string) bool { return o.most(account{org, CPU}) > 0 }

// Charge counts CPU time that a script of an organisation has used. Its error says that
// nothing is left for the day; the time is counted nevertheless.
func (o *Orgs) Charge(ctx context.Context, org string, used time.Duration) error {
	a := account{org, CPU}
	most := o.most(a)
	if most <= 0 {
		return nil
	}
	l, now := o.lease(a), o.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.day == dayOf(now) { // else a script ran past midnight: what it used before is not counted
		l.left -= int64(used)
	}
	return o.fill(ctx, a, l, now, most, int64(cpuPortion))
}
