package script

import (
	"sync/atomic"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// liveLines limits the lines sent while a script runs. The result has all of them.
const liveLines = 1000

// LogMessage is one line of a run, sent to the caller while the script runs: the data of
// a log message from the logger "script".
type LogMessage struct {
	Number int64  `json:"number"` // 1, 2, 3 … in order
	Stream string `json:"stream"` // stdout, stderr or log
	Text   string `json:"text"`
}

// watch returns what receives the run's lines: the request's Watch, otherwise the
// caller, if it accepts log messages.
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

// messageLevel returns the MCP log level of a line.
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
