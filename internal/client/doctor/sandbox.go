package doctor

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// sandbox reports what the sandbox can do here. What is missing is a problem only if an
// upstream needs it.
func (d *doctor) sandbox(context.Context) {
	support := d.Config.Launcher(d.Env).Support()
	missing := support.Missing()
	if len(missing) == 0 {
		d.ok("sandbox", "namespaces, Landlock and filters of system calls work; %s", support.LimitedBy())
		return
	}
	state, needed := Note, ""
	if specs, _, err := d.Config.UpstreamSpecs(d.Env); err == nil {
		for _, spec := range specs {
			if spec.Sandbox.Require || spec.Sandbox.Level == profile.Strict {
				state, needed = Problem, fmt.Sprintf("; %s needs it", spec.Name)
			}
		}
	}
	for _, line := range missing {
		d.report(Finding{"sandbox", state, line + needed, "docs/sandbox.md says what each system needs"})
	}
}
