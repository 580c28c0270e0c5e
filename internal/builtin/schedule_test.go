package builtin_test

import (
	"strings"
	"testing"
	"time"
)

func TestScheduleTools(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	hash := o.storeScript(t, `function describe() return { name = "wake", description = "Wakes.", params = {} } end
		function main() return "awake" end`, "")
	var made struct {
		JobID      string  `json:"job_id"`
		ScheduleID string  `json:"schedule_id"`
		NextRun    float64 `json:"next_run"`
	}
	o.mustCall(t, "lua_execute", `{"script_hash":"`+hash+`","schedule":"0 7 * * 1-5","timezone":"Europe/Berlin","tags":["early"]}`, &made)
	if made.JobID != "" || made.ScheduleID == "" || made.NextRun < float64(time.Now().Unix()) {
		t.Fatalf("made %+v", made)
	}
	var list struct {
		Schedules []struct {
			ScheduleID string `json:"schedule_id"`
			Schedule   string
			Name       string
			Paused     bool
			NextRun    float64 `json:"next_run"`
		}
	}
	id := `{"schedule_id":"` + made.ScheduleID + `"}`
	for _, step := range []struct {
		tool   string
		paused bool
		left   int
	}{{"", false, 1}, {"schedule_pause", true, 1}, {"schedule_pause", true, 1}, {"schedule_resume", false, 1}, {"schedule_remove", false, 0}} {
		if step.tool != "" {
			o.mustCall(t, step.tool, id, nil)
		}
		list.Schedules = nil
		o.mustCall(t, "schedule_list", `{}`, &list)
		if len(list.Schedules) != step.left {
			t.Fatalf("after %q: %+v", step.tool, list)
		}
		if step.left == 0 {
			continue
		}
		s := list.Schedules[0]
		if s.ScheduleID != made.ScheduleID || s.Schedule != "0 7 * * 1-5" || s.Name != "wake" || s.Paused != step.paused || (s.NextRun == 0) != step.paused {
			t.Errorf("after %q: %+v", step.tool, s)
		}
	}
	for _, name := range []string{"schedule_pause", "schedule_resume", "schedule_remove"} {
		if view, err := o.call(t, name, id); err != nil || !view.IsError || !strings.Contains(view.Text(), made.ScheduleID) {
			t.Errorf("%s of a removed schedule: %s (%v)", name, view.Text(), err)
		}
	}
}

func TestDelayedJobs(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	hash := o.storeScript(t, "function main() return 1 end", "")
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, when := range []string{`"delay_ms":3600000`, `"start_at":"` + at.Format(time.RFC3339) + `"`} {
		var made struct {
			JobID   string  `json:"job_id"`
			NextRun float64 `json:"next_run"`
		}
		o.mustCall(t, "lua_execute", `{"script_hash":"`+hash+`",`+when+`}`, &made)
		var status struct {
			Status string
			DueAt  float64 `json:"due_at"`
		}
		o.mustCall(t, "job_status", `{"job_id":"`+made.JobID+`"}`, &status)
		if status.Status != "pending" || status.DueAt < float64(at.Unix()) || status.DueAt != made.NextRun {
			t.Errorf("%s: started %+v, status %+v", when, made, status)
		}
	}
	for args, want := range map[string]string{
		`"schedule":"every day"`:                                    "cron",
		`"schedule":"@daily","timezone":"Mars"`:                     "Mars",
		`"schedule":"@daily","delay_ms":5`:                          "not both",
		`"start_at":"tomorrow"`:                                     "tomorrow",
		`"start_at":"2001-01-01T00:00:00Z"`:                         "within a year",
		`"start_at":"` + at.Format(time.RFC3339) + `","delay_ms":5`: "not both",
		`"timezone":"UTC"`:                                          "schedule",
	} {
		view, err := o.call(t, "lua_execute", `{"script_hash":"`+hash+`",`+args+`}`)
		if err != nil || !view.IsError || !strings.Contains(view.Text(), want) {
			t.Errorf("%s: %s (%v)", args, view.Text(), err)
		}
	}
}
