package agent

import (
	"context"
	"log/slog"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

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
