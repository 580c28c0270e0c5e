package job

import (
	"strings"
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"github.com/robfig/cron/v3"

	"github.com/luanette/luanette/internal/base/fault"
)

// cronTimes is a cron expression in a time zone.
type cronTimes struct {
	plan  cron.Schedule
	place *time.Location
}

var cronFields = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parseCron parses a cron expression and the name of a time zone; "" is the machine's
// own.
func parseCron(expression, zone string) (cronTimes, error) {
	place := time.Local
	if zone != "" {
		var err error
		if place, err = time.LoadLocation(zone); err != nil {
			return cronTimes{}, fault.New(fault.InvalidParams, "no time zone %q", zone).
				WithHint("give a name such as Europe/Berlin or UTC, or omit it for the server's own")
		}
	}
	expression = strings.TrimSpace(expression)
	if strings.Contains(expression, "=") { // the library parses zones there, and panics on some invalid ones
		return cronTimes{}, invalidCron(expression, "it must not contain a time zone; use the zone parameter")
	}
	plan, err := cronFields.Parse(expression)
	if err != nil {
		return cronTimes{}, invalidCron(expression, err.Error())
	}
	return cronTimes{plan, place}, nil
}

func invalidCron(expression, problem string) error {
	return fault.New(fault.InvalidParams, "%q is not a cron expression: %s", expression, problem).
		WithHint("write minute hour day month weekday, such as */15 * * * * or 0 7 * * 1-5; or @hourly, @daily, @weekly, @every 10m")
}

// after returns the next time after t, or zero if there is none within five years.
func (r cronTimes) after(t time.Time) time.Time { return r.plan.Next(t.In(r.place)) }
