package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/govern/quota"
)

type orgCommand struct {
	Usage orgUsageCommand `cmd:"" help:"Show what an organisation has used of its quotas today."`
}

type orgUsageCommand struct {
	serverAPIFlags
	Org string `arg:"" help:"The organisation."`
}

// Run prints the use of an organisation's quotas.
func (c *orgUsageCommand) Run(ctx context.Context, proc *process) error {
	var u quota.OrgUsage
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/orgs/"+url.PathEscape(c.Org)+"/usage", &u); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, u)
	}
	var rows [][]string
	for _, q := range u.Quotas() {
		renews := "-"
		if !q.Renews.IsZero() {
			renews = q.Renews.Format(time.RFC3339)
		}
		rows = append(rows, []string{q.Name, decimals(q.Used.Used), decimals(q.Limit), renews})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(proc.Stdout, "%s has no quotas\n", c.Org)
		return err
	}
	return table(proc, []string{"QUOTA", "USED", "LIMIT", "RENEWS"}, rows)
}

// decimals writes a number with at most three decimals.
func decimals(n float64) string { return strconv.FormatFloat(math.Round(n*1000)/1000, 'f', -1, 64) }
