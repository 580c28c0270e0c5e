package jobtools

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Versions knows under which name and version a script was published, and the version that the
// name has now.
type Versions interface {
	Newest(ctx context.Context, hash string) (v publish.Version, now int, err error)
}

// Schedules makes the tools that manage schedules made by lua_execute.
func Schedules(s *job.Queue, versions Versions) []toolset.Tool {
	t := scheduleTools{s, versions}
	change := tool.Hints{Idempotent: true, NonDestructive: true, ClosedWorld: true}
	return []toolset.Tool{
		toolset.Define(texts, "schedule_list", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.list),
		toolset.Checked(toolset.Define(texts, "schedule_pause", change, t.pause), t.refuses),
		toolset.Checked(toolset.Define(texts, "schedule_resume", change, t.resume), t.refuses),
		toolset.Checked(toolset.Define(texts, "schedule_remove", tool.Hints{ClosedWorld: true}, t.remove), t.refuses),
	}
}

type scheduleTools struct {
	schedules *job.Queue
	versions  Versions
}

// ScheduleView is a schedule as the tools show it. Times are seconds since 1970.
type ScheduleView struct {
	ScheduleID string   `json:"schedule_id"`
	Schedule   string   `json:"schedule" jsonschema:"the cron expression"`
	Timezone   string   `json:"timezone,omitempty" jsonschema:"missing if it is the server's own"`
	Name       string   `json:"name,omitempty"`
	ScriptHash string   `json:"script_hash,omitempty"`
	Version    string   `json:"version,omitempty" jsonschema:"the published version that it runs, such as report@1"`
	Published  string   `json:"published,omitempty" jsonschema:"the version that is published now, if it is another one"`
	Creator    string   `json:"creator,omitempty"`
	By         string   `json:"by,omitempty" jsonschema:"client or key of the owner that made it"`
	Tags       []string `json:"tags"`
	CreatedAt  float64  `json:"created_at" jsonschema:"seconds since 1970"`
	Paused     bool     `json:"paused"`
	Reason     string   `json:"paused_because,omitempty" jsonschema:"if the server paused it"`
	NextRun    float64  `json:"next_run,omitempty" jsonschema:"seconds since 1970; missing while it is paused"`
	LastRun    float64  `json:"last_run,omitempty" jsonschema:"when it started its last job"`
	LastJobID  string   `json:"last_job_id,omitempty"`
	Started    int      `json:"started" jsonschema:"jobs it started so far"`
	Skipped    int      `json:"skipped,omitempty" jsonschema:"times skipped because the previous job was still running"`
	builtin.Shared
	Params toolset.Object `json:"params,omitempty" jsonschema:"the argument of main"`
}

// view shows a schedule with the version of its script.
func (t scheduleTools) view(ctx context.Context, s *job.Schedule) (ScheduleView, error) {
	view := scheduleView(s)
	if s.Hash == "" {
		return view, nil
	}
	v, now, err := t.versions.Newest(ctx, s.Hash)
	if v.Version > 0 {
		view.Version = fmt.Sprintf("%s@%d", v.Name, v.Version)
	}
	if now > 0 && now != v.Version {
		view.Published = fmt.Sprintf("%s@%d", v.Name, now)
	}
	return view, err
}

func scheduleView(s *job.Schedule) ScheduleView {
	return ScheduleView{
		ScheduleID: s.ID, Schedule: s.Cron, Timezone: s.Zone, Name: s.Name, ScriptHash: s.Hash, Creator: s.Creator, By: s.By, Tags: append([]string{}, s.Tags...),
		CreatedAt: builtin.Seconds(s.Created), Paused: s.Paused, Reason: s.Reason, NextRun: builtin.Seconds(s.Next), LastRun: builtin.Seconds(s.Last), LastJobID: s.LastJob,
		Started: s.Started, Skipped: s.Skipped, Shared: sharedView(s.Sharing), Params: toolset.Object(s.Params),
	}
}

// maxShownParams is how many bytes of the parameters of a schedule are in its line.
const maxShownParams = 200

// Script returns the name of the script with its version, and the one that is published now.
func (v *ScheduleView) Script() string {
	name := cmp.Or(v.Version, v.Name)
	if v.Published != "" {
		name += " (" + v.Published + " is published now)"
	}
	return name
}

// ShownParams returns the parameters, shortened; "" if there are none.
func (v *ScheduleView) ShownParams() string {
	if text := string(v.Params); text != "{}" {
		return redact.Cut(text, maxShownParams)
	}
	return ""
}

// Text returns it as one line.
func (v ScheduleView) Text() string {
	text := fmt.Sprintf("Schedule %s: %s", v.ScheduleID, v.Schedule)
	if v.Timezone != "" {
		text += " (" + v.Timezone + ")"
	}
	if name := v.Script(); name != "" {
		text += ", " + name
	}
	if params := v.ShownParams(); params != "" {
		text += " " + params
	}
	switch {
	case v.Paused:
		text += ", paused"
	case v.NextRun > 0:
		text += ", next run " + builtin.TimeText(v.NextRun)
	default:
		text += ", no further run"
	}
	text = fmt.Sprintf("%s, %d started", text, v.Started)
	if v.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", v.Skipped)
	}
	if v.Owner != "" {
		text += ", of " + v.Owner
	}
	if v.By != "" {
		text += ", by " + v.By
	}
	if v.LastJobID != "" {
		text += ", last job " + v.LastJobID
	}
	return text
}

// ScheduleList is the result of schedule_list.
type ScheduleList struct {
	Schedules []ScheduleView `json:"schedules"`
}

// Text returns one line per entry.
func (l ScheduleList) Text() string {
	lines := []string{"Found " + plural.Count(len(l.Schedules), "schedule")}
	for _, v := range l.Schedules {
		lines = append(lines, v.Text())
	}
	return strings.Join(lines, "\n")
}

func (t scheduleTools) list(ctx context.Context, _ tool.Call, _ struct{}) (ScheduleList, error) {
	all, err := t.schedules.Schedules(ctx)
	l := ScheduleList{Schedules: []ScheduleView{}}
	for i := 0; i < len(all) && err == nil; i++ {
		var view ScheduleView
		view, err = t.view(ctx, &all[i])
		l.Schedules = append(l.Schedules, view)
	}
	return l, err
}

type scheduleIn struct {
	ScheduleID string `json:"schedule_id" jsonschema:"id of a schedule, from lua_execute or schedule_list" min:"1" max:"64"`
}

func (t scheduleTools) refuses(ctx context.Context, _ tool.Call, in scheduleIn) error {
	return t.schedules.MayChange(ctx, principal.Schedule, in.ScheduleID)
}

func (t scheduleTools) pause(ctx context.Context, _ tool.Call, in scheduleIn) (ScheduleView, error) {
	return t.change(ctx, in, true)
}

func (t scheduleTools) resume(ctx context.Context, _ tool.Call, in scheduleIn) (ScheduleView, error) {
	return t.change(ctx, in, false)
}

func (t scheduleTools) change(ctx context.Context, in scheduleIn, paused bool) (ScheduleView, error) {
	s, err := t.schedules.PauseSchedule(ctx, in.ScheduleID, paused)
	if err != nil {
		return ScheduleView{}, err
	}
	return t.view(ctx, &s)
}

// ScheduleRemoved is the result of schedule_remove.
type ScheduleRemoved struct {
	ScheduleID string `json:"schedule_id"`
	Removed    bool   `json:"removed"`
}

// Text returns it as one line.
func (r ScheduleRemoved) Text() string { return "Schedule " + r.ScheduleID + " removed" }

func (t scheduleTools) remove(ctx context.Context, _ tool.Call, in scheduleIn) (ScheduleRemoved, error) {
	err := t.schedules.Unschedule(ctx, in.ScheduleID)
	return ScheduleRemoved{in.ScheduleID, err == nil}, err
}
