package chatapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/core/principal"
)

// UsageReporter reports what was used.
type UsageReporter interface {
	Report(ctx context.Context, q spending.Query) (spending.Report, error)
}

// nothingUsed is the UsageReporter of a service that counts nothing.
type nothingUsed struct{}

func (nothingUsed) Report(context.Context, spending.Query) (spending.Report, error) {
	return spending.Report{}, nil
}

// Usage is what an organisation's people have used.
type Usage struct {
	Org   string            `json:"org"`
	Days  int               `json:"days"`
	Users []spending.Person `json:"users"`
}

// UsageReport is what an organisation or a person has used, by day, person and turn.
type UsageReport struct {
	Org  string `json:"org"`
	User string `json:"user_id,omitempty" doc:"if it is of one person"`
	spending.Report
}

// usage is GET /api/v1/admin/orgs/{org}/usage.
func (d *Handler) usage(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	days, report, err := d.readUsage(r, p)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, Usage{Org: p.Org, Days: days, Users: filled(report.People)})
	return nil
}

// usageReport is GET /api/v1/usage. A key of one person sees that person's usage; that of
// all people needs the scope org.
func (d *Handler) usageReport(w http.ResponseWriter, r *http.Request) error {
	who, query := principal.Of(r.Context()), r.URL.Query()
	p := conversation.Person{Org: cmp.Or(query.Get("org"), who.Org, conversation.DefaultOrg), User: cmp.Or(query.Get("user_id"), who.User)}
	if p.User != "" {
		if err := maySend(who, p); err != nil {
			return err
		}
	} else if !who.May(principal.Chat, p.Org) {
		return fault.New(fault.Denied, "%s may not see the usage of %s", who.Title(), p.Org)
	} else if !who.May(principal.Org, p.Org) {
		return fault.New(fault.InvalidParams, "%s may not see the usage of all users of %s", who.Title(), p.Org).
			WithHint("name one with user_id, or use a key with the scope org of the organisation %s", p.Org)
	}
	_, report, err := d.readUsage(r, p)
	if err != nil {
		return err
	}
	report.Days, report.People, report.Turns, report.Budgets = filled(report.Days), filled(report.People), filled(report.Turns), filled(report.Budgets)
	httpjson.JSON(w, http.StatusOK, UsageReport{Org: p.Org, User: p.User, Report: report})
	return nil
}

// readUsage reads the usage of the days that a request asks for.
func (d *Handler) readUsage(r *http.Request, p conversation.Person) (days int, report spending.Report, err error) {
	if days, err = number(r, "days", 30, 1, 3650); err != nil {
		return 0, report, err
	}
	turns, err := number(r, "turns", 100, 0, 1000)
	if err != nil {
		return 0, report, err
	}
	since := d.options.Clock.Now().UTC().AddDate(0, 0, 1-days)
	report, err = d.options.Usage.Report(r.Context(), spending.Query{Org: p.Org, User: p.User, Since: since, Turns: turns})
	return days, report, err
}

// filled returns a list that is not null in JSON.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
