package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/access/quota"
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
	for _, q := range []struct {
		name string
		of   quota.Used
	}{{quota.Calls, u.Calls}, {quota.Jobs, u.Jobs}} {
		if q.of.Limit > 0 {
			rows = append(rows, []string{q.name, strconv.FormatInt(q.of.Used, 10), strconv.FormatInt(q.of.Limit, 10), u.Renews.Format(time.RFC3339)})
		}
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(proc.Stdout, "%s has no quotas\n", c.Org)
		return err
	}
	return table(proc, []string{"QUOTA", "USED", "LIMIT", "RENEWS"}, rows)
}
