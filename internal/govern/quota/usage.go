package quota

import (
	"context"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// OrgUsage is how much of its quotas an organisation has used today.
type OrgUsage struct {
	Org string `json:"org"`
	// Calls and CPUSeconds include what other nodes have taken and not used yet: up to
	// 0.2 % of the limit each, or ten milliseconds.
	Calls      Used      `json:"calls"`
	Jobs       Used      `json:"jobs"`
	CPUSeconds Used      `json:"cpu_seconds"`
	StorageMB  *Used     `json:"storage_mb,omitempty"` // what it stores now
	Renews     time.Time `json:"renews"`               // when a new day begins
}

// Used is how much of a quota is used. What has no limit is not counted.
type Used struct {
	Used  float64 `json:"used"`
	Limit float64 `json:"limit,omitempty"`
}

// Line is a line of a table of quotas.
type Line struct {
	Name string // its setting
	Used
	Renews time.Time // zero: it does not renew
}

// Quotas returns those that have a limit, in the order of their settings.
func (u OrgUsage) Quotas() (list []Line) {
	all := []Line{{Calls, u.Calls, u.Renews}, {Jobs, u.Jobs, u.Renews}, {CPU, u.CPUSeconds, u.Renews}}
	if u.StorageMB != nil {
		all = append(all, Line{Storage, *u.StorageMB, time.Time{}})
	}
	for _, q := range all {
		if q.Limit > 0 {
			list = append(list, q)
		}
	}
	return list
}

// Usage returns today's use of an organisation, on all nodes.
func (o *Orgs) Usage(ctx context.Context, org string) (OrgUsage, error) {
	day := dayOf(o.now())
	u := OrgUsage{Org: org, Renews: endOf(day)}
	counted := map[string]*Used{Calls: &u.Calls, Jobs: &u.Jobs, CPU: &u.CPUSeconds}
	err := o.db.Read(ctx, func(tx *db.Tx) error {
		for kind, to := range counted {
			used, err := account{org, kind}.used(ctx, tx, day)
			if err != nil {
				return err
			}
			to.Used = float64(used)
		}
		return nil
	})
	for kind, to := range counted {
		a := account{org, kind}
		unit := float64(a.unit())
		to.Used, to.Limit = (to.Used-float64(o.unused(a, day)))/unit, float64(o.most(a))/unit
	}
	if err == nil && o.Stored != nil {
		u.StorageMB, err = o.Stored(ctx, org)
	}
	return u, err
}

// unused is what this node has taken of a quota and not used yet.
func (o *Orgs) unused(a account, day int64) int64 {
	l := o.lease(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.day != day {
		return 0
	}
	return l.left
}

// Routes are the routes of the API.
func (o *Orgs) Routes() []principal.Route {
	return []principal.Route{{Pattern: "GET /api/v1/orgs/{org}/usage", Scope: principal.Org, Serve: func(r *http.Request) (any, error) {
		return o.Usage(r.Context(), r.PathValue("org"))
	}}}
}
