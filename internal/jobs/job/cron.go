package job

import (
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the machine has none

	"github.com/robfig/cron/v3"

	"github.com/luanette/luanette/internal/base/fault"
)

// rhythm is a cron expression in a place.
type rhythm struct {
	plan  cron.Schedule
	place *time.Location
}

var cronFields = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// readRhythm reads a cron expression and the name of a time zone, "" being the
// machine's own.
func readRhythm(expression, zone string) (rhythm, error) {
	place := time.Local
	if zone != "" {
		var err error
		if place, err = time.LoadLocation(zone); err != nil {
			return rhythm{}, fault.New(fault.InvalidParams, "no time zone %q", zone).
				WithHint("give a name such as Europe/Berlin or UTC, or leave it away for the server's own")
		}
	}
	expression = strings.TrimSpace(expression)
	if strings.Contains(expression, "=") { // the library reads zones there, and some wrong ones make it panic
		return rhythm{}, wrongCron(expression, "a time zone does not belong into it; there is a parameter for it")
	}
	plan, err := cronFields.Parse(expression)
	if err != nil {
		return rhythm{}, wrongCron(expression, err.Error())
	}
	return rhythm{plan, place}, nil
}

func wrongCron(expression, problem string) error {
	return fault.New(fault.InvalidParams, "%q is no cron expression: %s", expression, problem).
		WithHint("write minute hour day month weekday, such as */15 * * * * or 0 7 * * 1-5; or @hourly, @daily, @weekly, @every 10m")
}

// after is the first beat after t; zero when there is none in the next five years.
func (r rhythm) after(t time.Time) time.Time { return r.plan.Next(t.In(r.place)) }
