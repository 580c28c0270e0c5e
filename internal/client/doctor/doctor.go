// Package doctor examines an installation: configuration, stored data, addresses,
// upstreams, clients and the programs that they need. Each finding is fine, or says what
// to do.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/attach"
)

// States of findings.
const (
	OK      = "ok"
	Note    = "note"    // nothing is wrong, but one may want to know
	Warning = "warning" // it works, and something should be done
	Problem = "problem" // something does not work
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"` // what was examined
	State string `json:"state"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do
}

// Options are what is examined.
type Options struct {
	Config  *config.Loaded
	Env     config.Environment
	Version string
	Place   attach.Place  // where a running server can be found
	Timeout time.Duration // of each upstream
}

// doctor examines one installation.
type doctor struct {
	Options
	server *attach.Server // the running server; nil if there is none
	report func(Finding)
}

// Examine runs all checks and reports their findings in order, as they are found.
func Examine(ctx context.Context, o Options, report func(Finding)) {
	d := &doctor{Options: o, report: report}
	if found, err := attach.Find(ctx, o.Place, false); err == nil {
		d.server = &found
	}
	for _, check := range []func(context.Context){
		d.configuration, d.dataFolder, d.database, d.backups, d.keys, d.address, d.certificate, d.telemetry, d.clock,
		d.sandbox, d.upstreams, d.clients, d.programs,
	} {
		if ctx.Err() != nil {
			return
		}
		check(ctx)
	}
}

// Unreadable is the finding about a configuration that cannot be read.
func Unreadable(err error) Finding {
	return Finding{"configuration", Problem, err.Error(), fault.HintOf(err)}
}

func (d *doctor) ok(check, format string, args ...any) {
	d.report(Finding{check, OK, fmt.Sprintf(format, args...), ""})
}

func (d *doctor) failed(check string, err error) {
	d.report(Finding{check, Problem, err.Error(), fault.HintOf(err)})
}

// configuration reports the file, its warnings and what in it is not trusted.
func (d *doctor) configuration(context.Context) {
	file := d.Config.File
	if file == "" {
		file = "none, all defaults; " + config.UserFile(d.Env) + " is read when it exists"
	}
	d.ok("configuration", "%s", file)
	for _, warning := range d.Config.Warnings {
		d.report(Finding{"configuration", Warning, warning, "change it in " + d.Config.File})
	}
	for _, item := range d.Config.Withheld() {
		d.report(Finding{"configuration", Warning, item.Key + " is ignored, since the file came with the folder: " + item.Does, "if you want that, run `luanette trust`"})
	}
	if _, warnings, err := d.Config.UpstreamSpecs(d.Env); err != nil {
		d.failed("configuration", err)
	} else {
		for _, warning := range warnings {
			d.report(Finding{"configuration", Warning, warning, "set the variable, or change it in the file"})
		}
	}
}
