package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/tool"
)

// turn is one message being answered.
type turn struct {
	agent    *Agent
	model    llm.Model
	request  Request
	limits   Limits
	began    time.Time
	reply    Reply
	tools    *toolbox
	memory   *memory // may be nil
	system   string  // the part of the prompt that does not change
	context  string  // the part that changes
	messages []llm.Message
	sent     int          // how many of messages are the request's
	calls    atomic.Int64 // tool calls, including those of scripts
	session  luaSession
	journal  *journal
	partial  strings.Builder // text of an answer that is still arriving

	mu   sync.Mutex // one event at a time; guards reply.Notices
	emit func(Event)
}

func (a *Agent) begin(r Request, emit func(Event)) *turn {
	if r.ID == "" {
		r.ID = rand.Text()
	}
	if emit == nil {
		emit = func(Event) {}
	}
	t := &turn{agent: a, model: a.model(r.Model), request: r, emit: emit, limits: a.options.Limits.with(r.Limits), began: time.Now()}
	t.reply = Reply{RequestID: r.ID, Language: cmp.Or(r.Language, "en"), Model: t.model.About().Model, Away: r.Away()}
	return t
}

func (t *turn) send(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(e)
}

// notice adds a notice, unless the turn has the same one already.
func (t *turn) notice(code, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := Notice{code, fmt.Sprintf(format, args...)}
	for _, known := range t.reply.Notices {
		if known == n {
			return
		}
	}
	t.reply.Notices = append(t.reply.Notices, n)
	t.emit(n)
}

// run asks the model and runs tools until the turn is done.
func (t *turn) run(ctx context.Context) error {
	if strings.TrimSpace(t.request.Message) == "" && len(t.request.Messages) == 0 && len(t.request.Attachments) == 0 {
		return fault.New(fault.InvalidParams, "the message is empty").WithHint("send some text")
	}
	if t.request.isReset() {
		return t.resetSession(ctx)
	}
	t.send(Status{"Processing your request..."})
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for t.reply.Iterations < t.limits.Iterations {
		t.reply.Iterations++
		if t.reply.Iterations > 1 {
			t.send(Status{"Preparing your response..."})
		}
		done, err := t.iterate(ctx)
		if err != nil || done {
			return err
		}
	}
	t.stopAtLimit(ctx)
	return nil
}

// prepare finds the tools and writes the prompt.
func (t *turn) prepare(ctx context.Context) error {
	if t.request.Memory != nil {
		m, err := openMemory(ctx, t.request.Memory)
		if err != nil {
			return err
		}
		t.memory = m
	}
	j, err := openJournal(ctx, t.request.Journal)
	if err != nil {
		return err
	}
	t.journal = j
	t.discover(ctx)
	t.system, t.context = t.writeSystem(), t.writeContext()
	t.messages = conversation(&t.request)
	t.checkMedia()
	if len(t.request.Attachments) > 0 {
		t.attach(&t.messages[len(t.messages)-1])
	}
	t.sent = len(t.messages)
	return nil
}

// iterate asks the model once and runs the tools of the answer; done means that it asked
// for none.
func (t *turn) iterate(ctx context.Context) (done bool, err error) {
	ctx, span := t.agent.tracer.Start(ctx, "iteration", trace.WithAttributes(
		attribute.Int("luanette.chat.iteration", t.reply.Iterations), attribute.String("request_id", t.request.ID)))
	defer span.End()
	answer, err := t.ask(ctx)
	if err != nil {
		return t.stopAtBudget(err)
	}
	uses := answer.Uses()
	if len(uses) == 0 {
		if answer.Stop == llm.StopPause { // the model wants to continue its answer
			return false, nil
		}
		t.finish(&answer)
		return true, nil
	}
	own, theirs := t.tools.split(uses)
	if len(own) > 0 {
		t.send(Status{fmt.Sprintf("Executing %d tool(s)...", len(own))})
		t.messages = append(t.messages, t.use(ctx, own))
	}
	if err := context.Cause(ctx); err != nil {
		return false, fault.Wrap(fault.CodeOf(err), err, "answer message")
	}
	if len(theirs) > 0 {
		t.reply.Calls, t.reply.Steps = theirs, t.messages[t.sent:]
	}
	return len(theirs) > 0, nil
}

// conversation returns the history and the message.
func conversation(r *Request) []llm.Message {
	if len(r.Messages) > 0 {
		return slices.Clone(r.Messages)
	}
	var messages []llm.Message
	for _, e := range r.History {
		if strings.TrimSpace(e.User) == "" || strings.TrimSpace(e.Assistant) == "" {
			continue // providers refuse empty messages
		}
		messages = append(messages, say(llm.User, e.User), say(llm.Assistant, strings.TrimRight(e.Assistant, " \t\r\n")))
	}
	if strings.TrimSpace(r.Message) == "" { // it has only attachments
		return append(messages, llm.Message{Role: llm.User})
	}
	return append(messages, say(llm.User, r.Message))
}

func say(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Blocks: []llm.Block{{Text: text}}}
}

// ask asks the model once and records its answer.
func (t *turn) ask(ctx context.Context) (llm.Answer, error) {
	if err := t.fit(ctx); err != nil {
		return llm.Answer{}, err
	}
	t.fitMedia()
	answer, err := t.nextAnswer(ctx)
	t.reply.Usage.Add(answer.Usage)
	if err != nil {
		return answer, err
	}
	t.partial.Reset()
	t.reply.Stop, t.reply.Model = answer.Stop, cmp.Or(answer.Model, t.reply.Model)
	if text := answer.Text(); strings.TrimSpace(text) != "" {
		t.reply.Responses = append(t.reply.Responses, text)
	}
	if blocks := withoutBlank(answer.Blocks); len(blocks) > 0 {
		t.messages = append(t.messages, llm.Message{Role: llm.Assistant, Blocks: blocks})
	}
	if answer.Cut != "" {
		t.notice("arguments_cut", "the model's call of %s was cut off at max_tokens: its arguments are incomplete, and it was not made", t.tools.shown(answer.Cut))
	}
	if answer.WithoutMedia {
		t.notice("media_not_sent", "the model does not take images, sounds or files; it got only the text")
	}
	t.send(Usage{t.reply.Usage})
	return answer, nil
}

// nextAnswer returns the model's answer: the one in the journal, or a new one.
func (t *turn) nextAnswer(ctx context.Context) (llm.Answer, error) {
	var answer llm.Answer
	if _, done := t.journal.restore(t.reply.Iterations, 0, &answer); done {
		if text := answer.Text(); text != "" {
			t.onDelta(llm.Delta{Text: text})
		}
		return answer, nil
	}
	if err := t.checkBudget(ctx); err != nil {
		return llm.Answer{}, err
	}
	ctx, asked := t.asking(ctx)
	answer, err := t.model.Answer(ctx, llm.Prompt{
		System: t.system, Context: t.context, Tools: t.tools.offered, Messages: t.messages,
		Choice: t.request.ClientTools.Choice, MaxTokens: t.request.MaxTokens,
	}, t.onDelta)
	asked(answer, err)
	t.spend(ctx, &answer)
	if err != nil || len(answer.Uses()) == 0 && answer.Stop != llm.StopPause {
		return answer, err // the last answer is stored with the turn
	}
	return answer, t.journal.save(ctx, t.reply.Iterations, 0, answer)
}

// withoutBlank removes blank text, which providers return but do not accept.
func withoutBlank(blocks []llm.Block) []llm.Block {
	var kept []llm.Block
	for _, b := range blocks {
		if b.Use != nil || b.Raw != nil || strings.TrimSpace(b.Text) != "" {
			kept = append(kept, b)
		}
	}
	return kept
}

// onDelta passes on the model's answer while it arrives.
func (t *turn) onDelta(d llm.Delta) {
	switch {
	case d.Text != "":
		t.partial.WriteString(d.Text)
		t.send(Text{Block: len(t.reply.Responses), Text: d.Text})
	case d.Wait != nil:
		t.send(Status{fmt.Sprintf("The model is busy; trying again in %v...", d.Wait.Delay.Round(100*time.Millisecond))})
		t.notice("model_busy", "the model could not answer at once and was asked again")
	}
}

// add appends text of the agent itself to the answer.
func (t *turn) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.send(Text{Block: len(t.reply.Responses), Text: text})
	t.reply.Responses = append(t.reply.Responses, text)
}

// finish adds notices about answers that ended early, and makes sure that there is an
// answer.
func (t *turn) finish(a *llm.Answer) {
	switch a.Stop {
	case llm.StopRefusal:
		t.notice("refusal", "the model declined to answer")
	case llm.StopLength:
		t.notice("max_tokens", "the answer was cut at the longest allowed")
	}
	if a.Cut != "" {
		t.add("I could not call %s: what I wanted to send was longer than an answer may be (max_tokens). Ask for less at a time.", t.tools.shown(a.Cut))
	}
	if len(t.reply.Responses) > 0 {
		return
	}
	switch a.Stop {
	case llm.StopRefusal:
		t.add("The model declined to answer this message.")
	case llm.StopLength:
		t.add("The answer was cut off before it began. Ask for less at a time.")
	default:
		t.add("The model returned an empty answer. Try to rephrase the message.")
	}
}

// stopAtLimit says in the answer that it is incomplete.
func (t *turn) stopAtLimit(ctx context.Context) {
	t.add("I stopped here: this message took %d steps, which is as many as are allowed. "+
		"What is above may be incomplete; ask me to continue, or ask for less at a time.", t.limits.Iterations)
	t.reply.Stop = StopIterations
	t.notice("iteration_limit", "stopped after %d steps", t.limits.Iterations)
	t.note(ctx, slog.LevelWarn, "iteration_limit")
}

// dropped replaces a tool result that was removed from the conversation.
const dropped = "[This result was removed to shorten the conversation. If you still need it, request the part you need again.]"

// fit keeps the conversation within its size limit. It first removes tool results that
// the model has seen, then the oldest exchanges, and then shortens the newest tool
// results equally.
func (t *turn) fit(ctx context.Context) error {
	bound := t.limits.PromptBytes
	size := sizeOf(t.messages)
	if size <= bound {
		return nil
	}
	before := size
	last := len(t.messages) - 1
	for i := 0; i < last && size > bound; i++ {
		size -= dropResults(&t.messages[i])
	}
	for n := t.oldest(); size > bound && n > 0; n = t.oldest() {
		size -= sizeOf(t.messages[:n])
		t.messages, t.sent = t.messages[n:], t.sent-n
	}
	if newest := &t.messages[len(t.messages)-1]; size > bound {
		size -= t.shareOut(newest, bound-(size-sizeOf(t.messages[len(t.messages)-1:])))
	}
	t.note(ctx, slog.LevelWarn, "prompt_trimmed", slog.Int("bytes", before), slog.Int("kept", size))
	if size > bound {
		return fault.New(fault.Limit, "the message and its context have %d bytes, more than the %d that may be sent to the model", size, bound).
			WithHint("send a shorter message, or raise [chat] prompt_kb")
	}
	return nil
}

// oldest returns how many messages the oldest exchange has, which can be removed without
// separating a tool call from its result. It is 0 if only the current message is left.
func (t *turn) oldest() int {
	for i := 1; i < t.sent; i++ {
		if m := t.messages[i]; m.Role == llm.User && m.Blocks[0].Result == nil {
			return i
		}
	}
	return 0
}

// dropResults removes the tool results in a message and returns the bytes saved.
func dropResults(m *llm.Message) (saved int) {
	for _, b := range m.Blocks {
		if b.Result != nil && len(b.Result.Text) > len(dropped) {
			saved += len(b.Result.Text) - len(dropped)
			b.Result.Text = dropped
		}
	}
	return saved
}

// shareOut shortens the tool results in a message so that each has an equal part of
// limit, and returns the bytes saved.
func (t *turn) shareOut(m *llm.Message, limit int) (saved int) {
	n := 0
	for _, b := range m.Blocks {
		if b.Result != nil {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	before := sizeOf([]llm.Message{*m})
	for _, b := range m.Blocks {
		if b.Result != nil {
			b.Result.Text = cutTo(b.Result.Text, max(limit/n-longestNote, 0))
		}
	}
	return before - sizeOf([]llm.Message{*m})
}

// sizeOf returns the size of messages in bytes.
func sizeOf(messages []llm.Message) int {
	size := 0
	for _, m := range messages {
		for _, b := range m.Blocks {
			size += len(b.Text) + len(b.Raw)
			if b.Use != nil {
				size += len(b.Use.Input)
			}
			if b.Result != nil {
				size += len(b.Result.Text)
			}
		}
	}
	return size
}

const (
	maxResultMedia = 20         // images, sounds and files of one result
	maxSentMedia   = 20_000_000 // bytes of them in one request to the model
)

// contentBlock is a block of a tool's result.
type contentBlock struct {
	Type, Text, MimeType, Name, URI, Data string
	Resource                              struct{ URI, MimeType, Text, Blob string }
}

// contentOf returns a tool's result: its text, otherwise its data, and its images, sounds
// and files.
func contentOf(view tool.View) (string, []llm.Media) {
	var parts []string
	var media []llm.Media
	for _, raw := range view.Content {
		var block contentBlock
		if json.Unmarshal(raw, &block) != nil {
			continue
		}
		found, text := block.read()
		if found != nil && len(media) < maxResultMedia {
			media = append(media, *found)
		} else if text != "" {
			parts = append(parts, text)
		}
	}
	text := strings.Join(parts, "\n\n")
	if strings.TrimSpace(text) == "" && len(media) == 0 && len(view.Structured) > 0 {
		return string(view.Structured), nil
	}
	return text, media
}

// read returns what a block contains, or a text that stands for it.
func (b contentBlock) read() (*llm.Media, string) {
	switch {
	case b.Type == "text":
		return nil, b.Text
	case b.Type == "resource" && b.Resource.Text != "":
		return nil, b.Resource.URI + ":\n" + b.Resource.Text
	case b.Type == "resource_link":
		return nil, "resource: " + b.URI
	case b.Type == "resource":
		b.Data, b.MimeType, b.Name = b.Resource.Blob, b.Resource.MimeType, b.Resource.URI
	}
	data, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil || len(data) == 0 {
		return nil, fmt.Sprintf("[%s %s, %d bytes: not shown]", b.Type, b.MimeType, len(b.Data))
	}
	return &llm.Media{Name: b.Name, MIME: b.MimeType, Data: data}, ""
}

// showMedia passes the images, sounds and files of a result on to people, and returns those
// that the model gets. A note in the text stands for the others.
func (t *turn) showMedia(o *outcome, number int, shown string) (sent []llm.Media) {
	for i, m := range o.media {
		info := MediaInfo{ID: fmt.Sprintf("%d.%d.%d", t.reply.Iterations, number, i+1), Tool: shown, Name: m.Name, MIME: m.MIME, Size: len(m.Data)}
		t.send(Media{info, m.Data})
		t.mu.Lock()
		t.reply.Media = append(t.reply.Media, info)
		t.mu.Unlock()
		if why := t.unfit(m); why != "" {
			o.text = strings.TrimPrefix(fmt.Sprintf("%s\n\n[%s: the person sees it, you do not: %s]", o.text, m, why), "\n\n")
			continue
		}
		sent = append(sent, m)
	}
	return sent
}

// unfit says why the model cannot get something; "" means that it can.
func (t *turn) unfit(m llm.Media) string {
	kind := m.Kind()
	switch {
	case kind == llm.Plain, kind == llm.Other:
		return "its type is not one that models take"
	case !t.model.About().Takes(kind):
		return "this model does not take " + map[llm.Kind]string{llm.Image: "images", llm.Audio: "sounds", llm.File: "files"}[kind]
	case m.TooLarge():
		return "it is too large"
	default:
		return ""
	}
}

// attach adds the attachments of the message to it.
func (t *turn) attach(m *llm.Message) {
	for _, a := range t.request.Attachments {
		m.Blocks = append(m.Blocks, t.attached(a))
	}
}

// attached returns something that the person attached, as the model gets it. Text is text.
func (t *turn) attached(a llm.Media) llm.Block {
	if a.Kind() == llm.Plain {
		return llm.Block{Text: fmt.Sprintf("\n\n%s:\n%s", a.Name, redact.Cut(string(a.Data), t.limits.PromptBytes/2))}
	}
	if why := t.unfit(a); why != "" {
		t.notice("media_not_sent", "%s was not sent to the model: %s", a, why)
		return llm.Block{Text: fmt.Sprintf("\n\n[The person attached %s. You do not get it: %s.]", a, why)}
	}
	return llm.Block{Media: &a}
}

// checkMedia replaces what the model cannot get in a conversation that the client keeps.
func (t *turn) checkMedia() {
	for i := range t.request.Messages {
		blocks := slices.Clone(t.messages[i].Blocks)
		for j := range blocks {
			if blocks[j].Media != nil {
				blocks[j] = t.attached(*blocks[j].Media)
			}
		}
		t.messages[i].Blocks = blocks
	}
}

// fitMedia keeps the newest images, sounds and files that may be sent in one request.
func (t *turn) fitMedia() {
	left := maxSentMedia
	for i := range slices.Backward(t.messages) {
		blocks := t.messages[i].Blocks
		for j := range slices.Backward(blocks) {
			b := &blocks[j]
			if b.Media != nil {
				if left -= len(b.Media.Data); left < 0 {
					*b = llm.Block{Text: dropped}
				}
				continue
			}
			if b.Result == nil {
				continue
			}
			b.Result.Media = slices.DeleteFunc(b.Result.Media, func(m llm.Media) bool {
				left -= len(m.Data)
				return left < 0
			})
		}
	}
}
