package agent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/tool"
)

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
