package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Output collects what a run prints and logs, up to a limit, and passes it on while the
// script runs. It is safe for concurrent use.
type Output struct {
	log   *slog.Logger
	watch func(OutputLine)
	left  int

	mu    sync.Mutex
	lines []OutputLine
}

// OutputLine is one line that a run printed or logged.
type OutputLine struct {
	Stream string    `json:"stream"` // stdout, stderr or log
	Level  string    `json:"level,omitempty"`
	Text   string    `json:"text"`
	Time   time.Time `json:"time"`
}

// NewOutput stores at most limit bytes. Log lines also go to log; every line also goes
// to watch, which may be nil and must not block.
func NewOutput(log *slog.Logger, limit int, watch func(OutputLine)) *Output {
	return &Output{log: log, watch: watch, left: limit}
}

// Print stores a line of standard output or standard error; level is that of a console,
// or empty.
func (o *Output) Print(stream, level, text string, at time.Time) error {
	return o.add(OutputLine{Stream: stream, Level: level, Text: text, Time: at})
}

// Log stores a log line and passes it to the server's log, with the trace of ctx.
func (o *Output) Log(ctx context.Context, level slog.Level, text string, at time.Time) error {
	if err := o.add(OutputLine{Stream: "log", Level: levelName(level), Text: text, Time: at}); err != nil {
		return err
	}
	o.log.Log(ctx, level, text, "from", "script") //nolint:sloglint // the words are the script's
	return nil
}

func (o *Output) add(line OutputLine) error {
	o.mu.Lock()
	o.left -= len(line.Text) + 1
	full := o.left < 0
	if !full {
		o.lines = append(o.lines, line)
	}
	o.mu.Unlock()
	if full {
		return fault.New(fault.Limit, "the script printed more than its limit").
			WithHint("print less, or return the data instead of printing it")
	}
	if o.watch != nil {
		o.watch(line)
	}
	return nil
}

// Lines returns the lines so far, in order.
func (o *Output) Lines() []OutputLine {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines[:len(o.lines):len(o.lines)]
}

func levelName(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warn"
	default:
		return "error"
	}
}
