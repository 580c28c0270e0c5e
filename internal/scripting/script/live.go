package script

import (
	"sync/atomic"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// liveLines bounds what is told while a script runs. All of it comes with the
// result anyway.
const liveLines = 1000

// LogMessage is one line of a run as its caller hears it while the script runs: the
// data of a log message from the logger "script".
type LogMessage struct {
	Number int64  `json:"number"` // 1, 2, 3 … in the order they were said
	Stream string `json:"stream"` // stdout, stderr or log
	Text   string `json:"text"`
}

// watch is who hears the run's lines as they are said: whoever the request
// names, or else the caller, if it listens.
func (q Request) watch() func(host.OutputLine) {
	if q.Watch != nil || q.Caller == nil || q.Caller.Log == nil {
		return q.Watch
	}
	var said atomic.Int64
	return func(line host.OutputLine) {
		number := said.Add(1)
		if number <= liveLines {
			q.Caller.Log(tool.Log{
				Level: messageLevel(line), Logger: "script",
				Data: encode(LogMessage{number, line.Stream, line.Text}),
			})
		}
	}
}

// messageLevel is how important MCP would call a line.
func messageLevel(line host.OutputLine) string {
	switch {
	case line.Stream == "stderr":
		return "notice"
	case line.Level == "warn":
		return "warning"
	case line.Level == "log":
		return "info"
	case line.Level != "":
		return line.Level
	default:
		return "info"
	}
}
