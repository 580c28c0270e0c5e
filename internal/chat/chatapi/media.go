package chatapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/turn"
)

const (
	maxAttachments = 10
	maxAttached    = 20_000_000            // bytes of all attachments of a message
	maxWithMedia   = maxAttached*4/3 + 1e6 // bytes of a body, in base64
)

// Attachment is an image, a sound or a file of a message.
type Attachment struct {
	Name string `json:"name,omitempty" doc:"file name"`
	MIME string `json:"mime_type,omitempty" doc:"type; recognized by the content if it is missing"`
	Data string `json:"data" doc:"content in base64"`
}

// Media is an image, a sound or a file that a tool returned.
type Media struct {
	ID   string `json:"id" doc:"within the message"`
	Tool string `json:"tool,omitempty" doc:"that returned it"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime_type"`
	Size int    `json:"size" doc:"bytes"`
	URL  string `json:"url" doc:"where this server serves it"`
}

func mediaOf(t *turn.Turn, info agent.MediaInfo) Media {
	return Media{info.ID, info.Tool, info.Name, info.MIME, info.Size, "/api/v1/chat/" + t.ID + "/media/" + info.ID}
}

// attachTo adds the attachments and the sound of a request to its message.
func (d *Handler) attachTo(ctx context.Context, q Request, m *conversation.Message) (warnings []string, err error) {
	total := 0
	for _, a := range q.Attachments {
		media, err := a.decode()
		if err != nil {
			return nil, err
		}
		if len(media.Data) == 0 { // clients of the program that this one replaces send links
			warnings = append(warnings, "an attachment without data was ignored")
			continue
		}
		if total += len(media.Data); total > maxAttached {
			return nil, failure.As(failure.TooLarge, fault.New(fault.Limit, "the attachments have more than %d bytes", maxAttached).WithHint("send less at once"))
		}
		if strings.HasPrefix(media.MIME, "audio/") && d.options.Transcribe != nil {
			err = d.hear(ctx, m, media)
		} else {
			m.Attach(media)
		}
		if err != nil {
			return nil, err
		}
	}
	if q.AudioBase64 == "" {
		return warnings, nil
	}
	return warnings, d.listen(ctx, q, m)
}

// listen adds what is said in the sound of a message.
func (d *Handler) listen(ctx context.Context, q Request, m *conversation.Message) error {
	data, err := base64.StdEncoding.DecodeString(q.AudioBase64)
	format, known := q.audioFormat()
	switch {
	case err != nil || len(data) == 0:
		return failure.As(failure.InvalidAudio, fault.New(fault.InvalidParams, "audio_base64 is not base64"))
	case len(data) > maxAttached:
		return failure.As(failure.TooLarge, fault.New(fault.Limit, "the audio has %d bytes, at most %d are allowed", len(data), maxAttached))
	case !known:
		return failure.As(failure.InvalidAudio, fault.New(fault.InvalidParams, "audio_format %q is not known", q.AudioFormat).
			WithHint("use one of %s", strings.Join(audioFormats, ", ")))
	case d.options.Transcribe == nil:
		return failure.As(failure.InvalidAudio, fault.New(fault.InvalidParams, "audio messages are not supported: no endpoint for transcription is configured").
			WithHint("send the message as text, or set [chat] transcription_url"))
	}
	return d.hear(ctx, m, llm.Media{MIME: "audio/" + format, Data: data})
}

// audioFormats are those that endpoints for transcription take.
var audioFormats = []string{"aac", "amr", "flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "opus", "wav", "webm"}

// audioFormat returns the format of a voice message, which may be given as a media type, such as
// audio/ogg; codecs=opus.
func (q Request) audioFormat() (format string, known bool) {
	kind, _, _ := strings.Cut(strings.ToLower(q.AudioFormat), ";")
	format = cmp.Or(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(kind), "audio/"), "x-"), "ogg")
	return format, slices.Contains(audioFormats, format)
}

// hear transcribes a sound and adds the text to the message.
func (d *Handler) hear(ctx context.Context, m *conversation.Message, sound llm.Media) error {
	text, err := d.options.Transcribe(ctx, sound)
	if err == nil && text == "" {
		err = fault.New(fault.InvalidParams, "nothing was understood").WithHint("speak again, or send the message as text")
	}
	if err != nil {
		return failure.As(hearingFailure(err), fault.Wrap(fault.CodeOf(err), err, "transcribe audio").WithHint("%s", fault.HintOf(err)))
	}
	sum := sha256.Sum256(append(sound.Data, m.Audio...))
	m.Audio = hex.EncodeToString(sum[:])
	m.Transcript = strings.TrimSpace(m.Transcript + "\n" + text)
	m.Text = strings.TrimSpace(m.Text + "\n\n" + text)
	return nil
}

// hearingFailure tells a sound that cannot be understood from an endpoint that cannot be used.
func hearingFailure(err error) failure.Kind {
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Timeout, fault.NeedsAuth, fault.Config:
		return failure.NoHearing
	default:
		return failure.InvalidAudio
	}
}

func (a Attachment) decode() (llm.Media, error) {
	data, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil {
		return llm.Media{}, fault.New(fault.InvalidParams, "the data of the attachment %q is not base64", a.Name)
	}
	kind, _, err := mime.ParseMediaType(cmp.Or(a.MIME, http.DetectContentType(data)))
	if err != nil {
		return llm.Media{}, fault.New(fault.InvalidParams, "the attachment %q has no valid mime_type: %q", a.Name, a.MIME)
	}
	if len(a.Name) > maxKey {
		return llm.Media{}, fault.New(fault.InvalidParams, "the name of an attachment has %d bytes, at most %d are allowed", len(a.Name), maxKey)
	}
	return llm.Media{Name: a.Name, MIME: kind, Data: data}, nil
}

// withoutMedia returns the size of a body without its attachments and sound.
func (q Request) withoutMedia(body []byte) int {
	size := len(body) - len(q.AudioBase64)
	for _, a := range q.Attachments {
		size -= len(a.Data)
	}
	return size
}

// shownTypes are types that browsers show without running anything in them.
var shownTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4", "audio/webm", "video/mp4", "video/webm"}

// media is GET /api/v1/chat/{message}/media/{media}.
func (d *Handler) media(r *request) error {
	t, err := d.attach(r.Request)
	if err != nil {
		return err
	}
	m, err := d.service.Conversations.Media(r.Context(), t.ID, r.PathValue("media"))
	if err != nil {
		return err
	}
	header := r.w.Header()
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Content-Length", strconv.Itoa(len(m.Data)))
	if slices.Contains(shownTypes, m.MIME) {
		header.Set("Content-Type", m.MIME)
	} else { // a page or a vector image could contain scripts
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": cmp.Or(m.Name, "file")}))
	}
	_, _ = r.w.Write(m.Data) // the client may have disconnected
	return nil
}
