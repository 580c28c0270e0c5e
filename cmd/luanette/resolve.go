package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/cas"
)

// candidate is something that a person may mean by the beginning of its id.
type candidate struct {
	id    string
	about string // to tell it from others
}

// byPrefix returns the id that begins with what a person typed. what is the noun for
// errors, and list the command that shows all ids.
func byPrefix(what, typed, list string, all []candidate) (string, error) {
	var found []candidate
	for _, c := range all {
		if c.id == typed {
			return c.id, nil
		}
		if strings.HasPrefix(c.id, strings.ToLower(typed)) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return "", fault.New(fault.NotFound, "no %s %s", what, typed).WithHint("`%s` shows them", list)
	case 1:
		return found[0].id, nil
	}
	const most = 5
	var names []string
	for _, c := range found[:min(len(found), most)] {
		names = append(names, fmt.Sprintf("%s (%s)", c.id, c.about))
	}
	if more := len(found) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "", fault.New(fault.InvalidParams, "%d %ss begin with %s", len(found), what, typed).
		WithHint("give more of the id: %s", strings.Join(names, ", "))
}

// uuidLength is the length of a whole id of a job, a schedule or an approval.
const uuidLength = 36

// subject is what a person named by the beginning of its id: the argument of a tool that
// takes the id, what they typed, and how it is found.
type subject struct {
	argument, typed string
	find            func(ctx context.Context, proc *process, api client.Client, typed string) (string, error)
}

// callAbout calls a tool about a subject and prints its result.
func (c *clientFlags) callAbout(ctx context.Context, proc *process, name string, args map[string]any, about subject) error {
	view, err := c.resultAbout(ctx, proc, name, args, about)
	if err != nil {
		return err
	}
	return c.print(proc, view)
}

// resultAbout is callAbout without printing the result.
func (c *clientFlags) resultAbout(ctx context.Context, proc *process, name string, args map[string]any, about subject) (view tool.View, err error) {
	err = c.withClient(ctx, proc, func(api client.Client) (err error) {
		if args[about.argument], err = about.find(ctx, proc, api, about.typed); err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, name, args)
		return err
	})
	return view, err
}

// lister calls tools that list something.
type lister struct {
	proc *process
	api  client.Client
}

// pages calls a tool that lists something in pages, and passes each page to add.
func (l lister) pages(ctx context.Context, name string, args map[string]any, add func(page json.RawMessage) error) error {
	for {
		view, err := callTool(ctx, l.proc, l.api, name, args)
		if err != nil {
			return err
		}
		if err := add(view.Structured); err != nil {
			return fault.Wrap(fault.Upstream, err, "read result of %s", name)
		}
		cursor, _ := rawjson.GetText(view.Structured, "next_cursor")
		if cursor == "" {
			return nil
		}
		args["cursor"] = cursor
	}
}

// jobID returns the id of a job that a person gave by its beginning.
func jobID(ctx context.Context, proc *process, api client.Client, typed string) (string, error) {
	if len(typed) == uuidLength {
		return typed, nil
	}
	var all []candidate
	err := lister{proc, api}.pages(ctx, "job_list", map[string]any{"limit": 1000}, func(raw json.RawMessage) error {
		var page builtin.JobList
		err := json.Unmarshal(raw, &page)
		for _, j := range page.Jobs {
			all = append(all, candidate{j.JobID, cmp.Or(j.Name, "job") + ", " + j.Status})
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return byPrefix("job", typed, "luanette job list", all)
}

// scheduleID returns the id of a schedule that a person gave by its beginning.
func scheduleID(ctx context.Context, proc *process, api client.Client, typed string) (string, error) {
	if len(typed) == uuidLength {
		return typed, nil
	}
	var all []candidate
	err := lister{proc, api}.pages(ctx, "schedule_list", map[string]any{}, func(raw json.RawMessage) error {
		var page builtin.ScheduleList
		err := json.Unmarshal(raw, &page)
		for _, s := range page.Schedules {
			all = append(all, candidate{s.ScheduleID, strings.TrimSpace(s.Name + " " + s.Schedule)})
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return byPrefix("schedule", typed, "luanette job schedule list", all)
}

// approvalID returns the id of an approval, or of a remembered decision, that a person
// gave by its beginning.
func approvalID(ctx context.Context, proc *process, api client.Client, typed string) (string, error) {
	view, err := callTool(ctx, proc, api, "approval_list", map[string]any{"status": "any", "limit": 500})
	if err != nil {
		return "", err
	}
	var list builtin.ApprovalList
	if err := json.Unmarshal(view.Structured, &list); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read list of approvals")
	}
	var all []candidate
	for _, a := range list.Approvals {
		all = append(all, candidate{a.ID, a.Subject + ", " + a.Status})
	}
	for _, r := range list.Remembered {
		all = append(all, candidate{r.ID, "remembered: " + r.Decision + " " + r.Subject})
	}
	return byPrefix("approval", typed, "luanette approval list --status any", all)
}

// looksLikeHash matches the beginning of a hash.
var looksLikeHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F]{4,64}$`) })

// scriptHash returns the hash of a stored script that a person gave by its beginning or
// by its name.
func scriptHash(ctx context.Context, proc *process, api client.Client, typed string) (string, error) {
	bare := strings.TrimPrefix(typed, "cas:")
	isHash := looksLikeHash().MatchString(bare)
	if isHash && len(bare) >= cas.MinPrefix {
		return bare, nil
	}
	if hash := publishedHash(ctx, api, typed); hash != "" {
		return hash, nil
	}
	scripts, err := storedScripts(ctx, proc, api)
	if err != nil {
		return "", err
	}
	if hash := named(proc, scripts, typed); hash != "" {
		return hash, nil
	}
	var all []candidate
	var names []string
	for _, s := range scripts {
		all = append(all, candidate{s.Hash, cmp.Or(s.Name, "no name")})
		names = append(names, s.Name)
	}
	if isHash {
		return byPrefix("script", bare, "luanette script search", all)
	}
	missing := fault.New(fault.NotFound, "%s is neither a file nor the name or hash of a stored script", typed)
	if near := suggest.Names(typed, names, 3); len(near) > 0 {
		return "", missing.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return "", missing.WithHint("`luanette script search` shows the stored ones")
}

// publishedHash returns the hash of the current version of a published script, or "".
func publishedHash(ctx context.Context, api client.Client, name string) string {
	view, err := api.Call(ctx, "script_history", map[string]any{"name": name}, nil)
	var history builtin.PublishedHistory
	if err != nil || view.IsError || json.Unmarshal(view.Structured, &history) != nil {
		return "" // it is not published
	}
	for _, v := range history.Versions {
		if v.Current {
			return v.Hash
		}
	}
	return ""
}

func storedScripts(ctx context.Context, proc *process, api client.Client) (all []builtin.ScriptView, err error) {
	err = lister{proc, api}.pages(ctx, "script_search", map[string]any{"limit": 200}, func(raw json.RawMessage) error {
		var page builtin.FoundScripts
		err := json.Unmarshal(raw, &page)
		all = append(all, page.Scripts...)
		return err
	})
	return all, err
}

// named returns the hash of the newest script of that name, or "".
func named(proc *process, newestFirst []builtin.ScriptView, name string) string {
	same := slices.DeleteFunc(slices.Clone(newestFirst), func(s builtin.ScriptView) bool { return s.Name != name })
	if len(same) == 0 {
		return ""
	}
	if len(same) > 1 {
		fmt.Fprintf(proc.Stderr, "%d stored scripts have the name %s; this is the newest, %s\n", len(same), name, same[0].Hash[:cas.MinPrefix])
	}
	return same[0].Hash
}

// scriptFor returns the hash of a script that a person named: a file, which is stored
// first, the name of a stored script, or the beginning of its hash.
func scriptFor(ctx context.Context, proc *process, api client.Client, typed string) (hash string, err error) {
	if info, err := os.Stat(typed); typed != "-" && (err != nil || !info.Mode().IsRegular()) {
		return scriptHash(ctx, proc, api, typed)
	}
	source, err := readSource(proc, typed)
	if err != nil {
		return "", err
	}
	args := map[string]any{"content": source}
	if language := storedLanguage(typed); language != "" {
		args["language"] = language
	}
	view, err := callTool(ctx, proc, api, "script_store", args)
	if err != nil {
		return "", err
	}
	var stored struct{ Hash string }
	if err := json.Unmarshal(view.Structured, &stored); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read result of script_store")
	}
	return stored.Hash, nil
}
