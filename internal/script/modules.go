package script

import (
	"github.com/luanette/luanette/internal/host"
	"github.com/luanette/luanette/internal/module/abc"
	"github.com/luanette/luanette/internal/module/artifact"
	"github.com/luanette/luanette/internal/module/audio"
	"github.com/luanette/luanette/internal/module/base"
	"github.com/luanette/luanette/internal/module/cas"
	"github.com/luanette/luanette/internal/module/clock"
	"github.com/luanette/luanette/internal/module/events"
	"github.com/luanette/luanette/internal/module/fs"
	"github.com/luanette/luanette/internal/module/help"
	"github.com/luanette/luanette/internal/module/http"
	"github.com/luanette/luanette/internal/module/json"
	"github.com/luanette/luanette/internal/module/log"
	"github.com/luanette/luanette/internal/module/mcp"
	"github.com/luanette/luanette/internal/module/midi"
	"github.com/luanette/luanette/internal/module/os"
	"github.com/luanette/luanette/internal/module/otel"
	"github.com/luanette/luanette/internal/module/parallel"
	"github.com/luanette/luanette/internal/module/progress"
	"github.com/luanette/luanette/internal/module/results"
	"github.com/luanette/luanette/internal/module/soundfont"
	"github.com/luanette/luanette/internal/module/temp"
	"github.com/luanette/luanette/internal/module/tools"
	"github.com/luanette/luanette/internal/module/workflow"
	"github.com/luanette/luanette/internal/module/workspace"
)

// modules is everything a script can reach, one line each. base comes first:
// the others' preludes may use it.
func modules() []host.Module {
	all := []host.Module{
		base.Module(),
		json.Module(),
		os.Module(),
		fs.Module(),
		temp.Module(),
		log.Module(),
		clock.Module(),
		progress.Module(),
		otel.Module(),
		mcp.Module(),
		tools.Module(),
		results.Module(),
		parallel.Module(),
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
