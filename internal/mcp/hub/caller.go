package hub

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// caller is the client as a tool sees it.
func (req *request) caller() *tool.Caller {
	c := &tool.Caller{User: req.who, Capabilities: req.caps, Stateless: req.era == wire.Modern}
	if req.who != "" {
		c.ID = "user:" + req.who
	}
	if req.session != nil && req.era == wire.Legacy {
		c.ID, c.Client, c.Agent = req.session.name, req.session, req.session.agent
	} else {
		info, _ := rawjson.Get(req.meta, wire.MetaClientInfo)
		c.Agent = agentOf(info)
	}
	resp := req.current()
	if resp == nil {
		return c
	}
	if resp.token != nil {
		c.Progress = req.progress
	}
	if resp.level != levelNone {
		c.Log = req.log
	}
	if req.canAsk() {
		c.Ask = req.ask
	}
	return c
}

// progressLimit lets only increasing progress through, and limits its rate.
type progressLimit struct {
	last   float64
	begun  bool
	tokens float64
	at     time.Time
}

// admit tells whether a report may be sent now. The last report of a call with a known
// total always may.
func (p *progressLimit) admit(now time.Time, report tool.Progress, perSecond int) bool {
	if p.begun && !(report.Progress > p.last) {
		return false
	}
	burst := float64(perSecond) / 2
	if !p.begun {
		p.tokens = burst
	} else {
		p.tokens = min(burst, p.tokens+now.Sub(p.at).Seconds()*float64(perSecond))
	}
	p.at = now
	finished := report.Total > 0 && report.Progress >= report.Total
	if p.begun && p.tokens < 1 && !finished {
		return false
	}
	p.begun, p.last = true, report.Progress
	p.tokens--
	return true
}

// progress sends a report with the client's progress token.
func (req *request) progress(report tool.Progress) {
	if math.IsNaN(report.Progress) || math.IsInf(report.Progress, 0) {
		return
	}
	req.mu.Lock()
	resp := req.response
	ok := resp != nil && resp.token != nil && req.progressLimit.admit(time.Now(), report, req.ep.hub.opts.Limits.Progress)
	req.mu.Unlock()
	if !ok {
		return
	}
	params := append([]byte(`{"progressToken":`), resp.token...)
	params = appendNumber(append(params, `,"progress":`...), report.Progress)
	if report.Total > 0 && !math.IsInf(report.Total, 0) {
		params = appendNumber(append(params, `,"total":`...), report.Total)
	}
	if report.Message != "" {
		params = rawjson.AppendText(append(params, `,"message":`...), report.Message)
	}
	req.send(wire.Notification(wire.NoteProgress, append(params, '}')), false)
}

func appendNumber(dst []byte, n float64) []byte {
	return strconv.AppendFloat(dst, n, 'g', -1, 64)
}

// level is the severity of a log message, or the least severity to be sent.
type level int32

// levels are MCP's names, the least severe first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

const (
	levelInfo level = 1
	levelNone level = 100 // no message is that severe
)

func parseLevel(name string) (level, bool) {
	i := slices.Index(levels, name)
	return level(i), i >= 0
}

// log sends a log message if the client wants its level. An unknown level counts as info.
func (req *request) log(entry tool.Log) {
	resp := req.current()
	if resp == nil {
		return
	}
	at, known := parseLevel(entry.Level)
	if !known {
		entry.Level, at = "info", levelInfo
	}
	want := resp.level
	if req.session != nil && req.era == wire.Legacy {
		want = level(req.session.level.Load())
	}
	if at < want {
		return
	}
	req.send(wire.Notification(wire.NoteMessage, logParams(entry)), false)
}

func logParams(entry tool.Log) json.RawMessage {
	params := rawjson.AppendText([]byte(`{"level":`), entry.Level)
	if entry.Logger != "" {
		params = rawjson.AppendText(append(params, `,"logger":`...), entry.Logger)
	}
	data := entry.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	return append(append(append(params, `,"data":`...), data...), '}')
}
