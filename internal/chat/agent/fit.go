package agent

import (
	"context"
	"log/slog"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/llm"
)

// dropped stands for a tool's answer that had to make room.
const dropped = "[This answer was dropped to make room. If you still need it, ask again for the part you need.]"

// fit keeps the conversation within its bound. First the answers of tools that
// the model has seen make room, then what was said longest ago, then the newest
// answers of tools share what is left.
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
	for size > bound && t.beginsWithHistory() {
		size -= sizeOf(t.messages[:2])
		t.messages = t.messages[2:]
	}
	if newest := &t.messages[len(t.messages)-1]; size > bound {
		size -= t.shareOut(newest, bound-(size-sizeOf(t.messages[len(t.messages)-1:])))
	}
	t.note(ctx, slog.LevelWarn, "prompt_trimmed", slog.Int("bytes", before), slog.Int("kept", size))
	if size > bound {
		return fault.New(fault.Limit, "the message and what belongs to it have %d bytes, more than the %d that may be sent to the model", size, bound).
			WithHint("send a shorter message, or raise [chat] prompt_bytes")
	}
	return nil
}

// beginsWithHistory tells whether the conversation begins with something said long
// ago, which can go without tearing a call from its answer.
func (t *turn) beginsWithHistory() bool {
	return len(t.request.History) > 0 && len(t.messages) > 2 && plainText(t.messages[0]) && plainText(t.messages[1])
}

// dropResults empties the tools' answers in a message; it returns the bytes saved.
func dropResults(m *llm.Message) (saved int) {
	for _, b := range m.Blocks {
		if b.Result != nil && len(b.Result.Text) > len(dropped) {
			saved += len(b.Result.Text) - len(dropped)
			b.Result.Text = dropped
		}
	}
	return saved
}

// shareOut cuts the tools' answers in a message so that each has an equal part of
// room; it returns the bytes saved.
func (t *turn) shareOut(m *llm.Message, room int) (saved int) {
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
			b.Result.Text = cutTo(b.Result.Text, max(room/n-longestNote, 0))
		}
	}
	return before - sizeOf([]llm.Message{*m})
}

func plainText(m llm.Message) bool {
	return len(m.Blocks) == 1 && m.Blocks[0].Text != ""
}

// sizeOf counts the bytes of what is said.
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
