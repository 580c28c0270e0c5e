package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// activityCommand is `luanette activity`: what clients do.
type activityCommand struct {
	clientFlags
	Session string        `arg:"" optional:"" help:"Show what was done in this session, step by step."`
	Client  string        `placeholder:"NAME" help:"Only sessions of this program, given by the beginning of its name."`
	Who     string        `placeholder:"KEY" help:"Only those of this key or person, given by id or name."`
	Outcome string        `enum:",ok,failed,denied,asked" default:"" placeholder:"ok|failed|denied|asked" help:"Only sessions in which that occurred."`
	Find    string        `placeholder:"WORDS" help:"Only sessions in which these words occur."`
	Since   time.Duration `placeholder:"1h" help:"Only sessions of this last period."`
	Limit   int           `placeholder:"20" help:"Maximum number of sessions; --follow ends after that many steps."`
	Follow  bool          `short:"f" help:"Print each step when it has ended, until interrupted."`
}

// Run lists sessions, or the steps of one.
func (c *activityCommand) Run(ctx context.Context, proc *process) error {
	switch {
	case c.Follow:
		return c.follow(ctx, proc)
	case c.Session != "":
		return c.show(ctx, proc)
	}
	var list adminapi.ActivityList
	raw, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/activity?"+c.query(c.Since, cmp.Or(c.Limit, 20)).Encode(), nil, &list)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	return printList(proc, list.Sessions, "no activity", "SESSION LATEST CLIENT WHO CALLS FAILED DENIED TITLE", func(s audit.Session) []string {
		count := func(n int64) string { return strconv.FormatInt(n, 10) }
		return []string{s.ID, s.Latest.Local().Format("2006-01-02 15:04"), cmp.Or(s.Agent, "-"), cmp.Or(s.Name, s.Who), count(s.Calls), count(s.Failed), count(s.Denied), s.Title}
	})
}

// query is the filter as URL parameters.
func (c *activityCommand) query(since time.Duration, limit int) url.Values {
	query := url.Values{"agent": {c.Client}, "who": {c.Who}, "outcome": {c.Outcome}, "find": {c.Find}, "limit": {strconv.Itoa(limit)}}
	if since > 0 {
		query.Set("since", time.Now().Add(-since).UTC().Format(time.RFC3339Nano))
	}
	return query
}

// show prints the steps of one session.
func (c *activityCommand) show(ctx context.Context, proc *process) error {
	var one adminapi.ActivitySession
	raw, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/activity/"+url.PathEscape(c.Session), nil, &one)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	s := one.Session
	fmt.Fprintf(proc.Stdout, "%s\n%s of %s, %s, %d failed\n\n", s.Title, cmp.Or(s.Agent, "a client"), cmp.Or(s.Name, s.Who), plural.Count(int(s.Calls), "call"), s.Failed)
	depth := map[string]int{}
	for i := range one.Steps {
		step := &one.Steps[i]
		if above, inside := depth[step.Parent]; inside {
			depth[step.ID] = above + 1
		} else {
			depth[step.ID] = 0
		}
		fmt.Fprintln(proc.Stdout, stepLine(step, depth[step.ID]))
	}
	return nil
}

// stepLine describes a step in one line.
func stepLine(s *audit.Step, depth int) string {
	line := s.At.Local().Format(time.TimeOnly) + "  " + strings.Repeat("  ", depth) + stepWords(s)
	took := time.Duration(s.Took-s.Waited) * time.Microsecond
	line += "  " + shortDuration(took)
	if s.Waited > 0 {
		line += ", waited " + shortDuration(time.Duration(s.Waited)*time.Microsecond)
	}
	return line
}

// shortDuration has about three digits.
func shortDuration(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// stepWords says what was done, and what came of it.
func stepWords(s *audit.Step) string {
	words := s.Tool + " " + oneLine(s.Args, 80)
	switch {
	case s.Decision == "deny":
		return words + " denied: " + cmp.Or(s.Message, s.Rule)
	case s.Decision == "ask":
		return words + " asks for approval"
	case s.Error != "":
		return words + " failed: " + cmp.Or(s.Message, oneLine(s.Result, 120), s.Error)
	}
	return words + " → " + cmp.Or(oneLine(s.Result, 80), fmt.Sprintf("%d bytes", s.Size))
}

// oneLine is JSON as a short line.
func oneLine(raw json.RawMessage, limit int) string {
	text := strings.Join(strings.Fields(string(raw)), " ")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}

// follow prints the steps of all sessions that end from now on, or from --since on.
func (c *activityCommand) follow(ctx context.Context, proc *process) error {
	return c.withClient(ctx, proc, func(api client.Client) error {
		since := time.Now().Add(-c.Since)
		printed := map[string]time.Time{}
		for {
			err := c.poll(ctx, proc, api, since, printed)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the command was interrupted
			}
			if err != nil || c.enough(printed) {
				return err
			}
			select {
			case <-time.After(followPause):
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// enough reports whether --limit steps were printed.
func (c *activityCommand) enough(printed map[string]time.Time) bool {
	return c.Limit > 0 && len(printed) >= c.Limit
}

// followed is how long a step may take that --follow prints when it has ended.
const followed = time.Hour

// poll prints the steps that have ended since a time and were not printed yet.
func (c *activityCommand) poll(ctx context.Context, proc *process, api client.Client, since time.Time, printed map[string]time.Time) error {
	query := c.query(0, 200)
	latest := since
	for _, at := range printed {
		if at.After(latest) {
			latest = at
		}
	}
	query.Set("since", latest.Add(-time.Second).UTC().Format(time.RFC3339Nano))
	var list adminapi.ActivityList
	if _, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/activity?"+query.Encode(), nil, &list); err != nil {
		return err
	}
	slices.Reverse(list.Sessions)
	for i := range list.Sessions {
		if err := c.printNew(ctx, proc, api, &list.Sessions[i], since, printed); err != nil {
			return err
		}
	}
	for id, at := range printed {
		if latest.Sub(at) > followed && c.Limit == 0 {
			delete(printed, id)
		}
	}
	return nil
}

func (c *activityCommand) printNew(ctx context.Context, proc *process, api client.Client, s *audit.Session, since time.Time, printed map[string]time.Time) error {
	var one adminapi.ActivitySession
	_, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/activity/"+url.PathEscape(s.ID), nil, &one)
	if fault.CodeOf(err) == fault.NotFound { // it was deleted meanwhile
		return nil
	}
	for i := range one.Steps {
		step := &one.Steps[i]
		end := step.At.Add(time.Duration(step.Took) * time.Microsecond)
		if _, done := printed[step.ID]; done || end.Before(since) || c.enough(printed) {
			continue
		}
		printed[step.ID] = end
		if c.JSON {
			err = json.NewEncoder(proc.Stdout).Encode(followedStep{s.ID, s.Agent, step})
		} else {
			_, err = fmt.Fprintln(proc.Stdout, cmp.Or(s.Agent, s.Name)+"  "+stepLine(step, 0))
		}
		if err != nil {
			return err
		}
	}
	return err
}

// followedStep is a line of `luanette activity --follow --json`.
type followedStep struct {
	Session string `json:"session"`
	Agent   string `json:"agent,omitempty"`
	*audit.Step
}
