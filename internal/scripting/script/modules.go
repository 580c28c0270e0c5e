package script

import (
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/abc"
	"github.com/luanette/luanette/internal/scripting/module/artifact"
	"github.com/luanette/luanette/internal/scripting/module/audio"
	"github.com/luanette/luanette/internal/scripting/module/background"
	"github.com/luanette/luanette/internal/scripting/module/base"
	"github.com/luanette/luanette/internal/scripting/module/base64"
	"github.com/luanette/luanette/internal/scripting/module/cas"
	"github.com/luanette/luanette/internal/scripting/module/check"
	"github.com/luanette/luanette/internal/scripting/module/clock"
	"github.com/luanette/luanette/internal/scripting/module/events"
	"github.com/luanette/luanette/internal/scripting/module/fs"
	"github.com/luanette/luanette/internal/scripting/module/help"
	"github.com/luanette/luanette/internal/scripting/module/http"
	"github.com/luanette/luanette/internal/scripting/module/json"
	"github.com/luanette/luanette/internal/scripting/module/kv"
	"github.com/luanette/luanette/internal/scripting/module/log"
	"github.com/luanette/luanette/internal/scripting/module/mcp"
	"github.com/luanette/luanette/internal/scripting/module/midi"
	"github.com/luanette/luanette/internal/scripting/module/os"
	"github.com/luanette/luanette/internal/scripting/module/otel"
	"github.com/luanette/luanette/internal/scripting/module/parallel"
	"github.com/luanette/luanette/internal/scripting/module/progress"
	"github.com/luanette/luanette/internal/scripting/module/results"
	"github.com/luanette/luanette/internal/scripting/module/soundfont"
	"github.com/luanette/luanette/internal/scripting/module/temp"
	"github.com/luanette/luanette/internal/scripting/module/tools"
	"github.com/luanette/luanette/internal/scripting/module/workflow"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
)

// modules lists all modules. base is first because the preludes of the others may use
// it.
func modules() []host.Module {
	all := []host.Module{
		base.Module(),
		json.Module(),
		base64.Module(),
		os.Module(),
		fs.Module(),
		temp.Module(),
		log.Module(),
		clock.Module(),
		check.Module(),
		progress.Module(),
		otel.Module(),
		mcp.Module(),
		tools.Module(),
		results.Module(),
		parallel.Module(),
		background.Module(),
		kv.Module(),
		midi.Module(),
		abc.Module(),
		cas.Module(),
		artifact.Module(),
		soundfont.Module(),
		audio.Module(),
		workflow.Module(),
		events.Module(),
		http.Module(),
		workspace.Module(),
	}
	return append(all, help.Module(all))
}

// IsFunction reports whether scripts have a function of a name, such as http.request.
func IsFunction(name string) bool {
	module, function, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(modules(), func(m host.Module) bool {
		return m.Name == module && slices.ContainsFunc(m.Funcs, func(f host.Func) bool { return f.Name == function })
	})
}
