package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// Media is an image, a sound or a file.
type Media struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime_type"`
	Data []byte `json:"data,omitempty"`
}

// Kind is what a model must be able to take to get a Media.
type Kind string

// The kinds.
const (
	Image Kind = "image" // PNG, JPEG, GIF or WebP
	Audio Kind = "audio" // WAV or MP3
	File  Kind = "file"  // PDF
	Plain Kind = "text"  // text, which every model takes
	Other Kind = ""      // no API takes it
)

// audioFormats are the names of audio formats in OpenAI's API.
var audioFormats = map[string]string{"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}

// Kind returns the kind of m by its type.
func (m Media) Kind() Kind {
	kind, _, err := mime.ParseMediaType(m.MIME)
	switch {
	case err != nil:
		return Other
	case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind):
		return Image
	case audioFormats[kind] != "":
		return Audio
	case kind == "application/pdf":
		return File
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+xml"), strings.HasSuffix(kind, "+json"),
		slices.Contains([]string{"application/json", "application/xml", "application/yaml", "application/javascript"}, kind):
		return Plain
	default:
		return Other
	}
}

// maxMedia limits one medium of each kind, in bytes, to what the APIs take: Anthropic's
// takes images of 5 MB in base64.
var maxMedia = map[Kind]int{Image: 3_750_000, Audio: 10_000_000, File: 10_000_000}

// TooLarge reports whether m has more bytes than may be sent to a model.
func (m Media) TooLarge() bool { return len(m.Data) > maxMedia[m.Kind()] }

// String describes m in a few words.
func (m Media) String() string {
	text := fmt.Sprintf("%s, %d bytes", m.MIME, len(m.Data))
	if m.Name != "" {
		text = m.Name + ", " + text
	}
	return text
}

// note replaces m in a request to a model that refused it.
func (m Media) note() string { return "[" + m.String() + ": the model's endpoint does not take it]" }

func (m Media) base64() string { return base64.StdEncoding.EncodeToString(m.Data) }

// dataURL returns m as a URL that contains it.
func (m Media) dataURL() string { return "data:" + m.MIME + ";base64," + m.base64() }

// takes returns the kinds that a model takes, if they are not configured.
func takes(o Options) []Kind {
	switch {
	case o.Media != nil:
		return o.Media
	case o.Provider == "openai" && strings.Contains(o.Model, "audio"):
		return []Kind{Image, Audio, File}
	default:
		return []Kind{Image, File}
	}
}

// hasMedia reports whether a prompt contains images, sounds or files.
func (p Prompt) hasMedia() bool {
	for _, m := range p.Messages {
		for _, b := range m.Blocks {
			if b.Media != nil || b.Result != nil && len(b.Result.Media) > 0 {
				return true
			}
		}
	}
	return false
}

// withoutMedia returns the prompt with notes in place of images, sounds and files.
func (p Prompt) withoutMedia() Prompt {
	p.Messages = slices.Clone(p.Messages)
	for i := range p.Messages {
		m := &p.Messages[i]
		m.Blocks = slices.Clone(m.Blocks)
		for j := range m.Blocks {
			m.Blocks[j] = m.Blocks[j].withoutMedia()
		}
	}
	return p
}

func (b Block) withoutMedia() Block {
	switch {
	case b.Media != nil:
		return Block{Text: b.Media.note()}
	case b.Result != nil && len(b.Result.Media) > 0:
		result := *b.Result
		for _, m := range result.Media {
			result.Text = strings.TrimPrefix(result.Text+"\n"+m.note(), "\n")
		}
		result.Media = nil
		return Block{Result: &result}
	default:
		return b
	}
}

// Transcriber turns speech into text, at an endpoint with OpenAI's transcription API. It is
// safe for concurrent use.
type Transcriber struct {
	client   *http.Client
	endpoint string
	model    string
	key      secret.Text
}

// TranscriberOptions configure a Transcriber.
type TranscriberOptions struct {
	BaseURL   string            // as Options.BaseURL
	Model     string            // empty means DefaultTranscriber
	Key       secret.Text       // may be empty
	Transport http.RoundTripper // nil means the default
}

const (
	// DefaultTranscriber is the model that transcribes if none is named.
	DefaultTranscriber = "whisper-1"
	transcribeTime     = 2 * time.Minute
	maxTranscript      = 1 << 20 // bytes
)

// OpenTranscriber makes a Transcriber. It makes no request.
func OpenTranscriber(o TranscriberOptions) (*Transcriber, error) {
	if !isHTTP(o.BaseURL) {
		return nil, fault.New(fault.Config, "chat.transcription_url: %q is not an http(s) address", o.BaseURL).WithHint("for example http://127.0.0.1:8000/v1")
	}
	chat := newOpenAI(Options{BaseURL: o.BaseURL}, nil)
	return &Transcriber{
		client:   &http.Client{Transport: o.Transport, CheckRedirect: stay},
		endpoint: strings.TrimSuffix(chat.endpoint, "/chat/completions") + "/audio/transcriptions",
		model:    cmp.Or(o.Model, DefaultTranscriber), key: o.Key,
	}, nil
}

// Transcribe returns what is said in a sound.
func (t *Transcriber) Transcribe(ctx context.Context, m Media) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, transcribeTime)
	defer cancel()
	body, kind, err := t.form(m)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "write request")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, body)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "write request")
	}
	req.Header.Set("Content-Type", kind)
	if !t.key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+t.key.Reveal())
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return "", t.fault(ctx, unwrapURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", t.fault(ctx, refusal(resp))
	}
	var answer struct{ Text string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxTranscript)).Decode(&answer); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read transcript")
	}
	return strings.TrimSpace(answer.Text), nil
}

// Func returns Transcribe, or nil if there is no Transcriber.
func (t *Transcriber) Func() func(context.Context, Media) (string, error) {
	if t == nil {
		return nil
	}
	return t.Transcribe
}

func (t *Transcriber) fault(ctx context.Context, err error) error {
	return failureOf(ctx, err).fault(About{Provider: "openai", Model: t.model}, 1)
}

// form writes the request's body.
func (t *Transcriber) form(m Media) (body *bytes.Buffer, kind string, err error) {
	body = &bytes.Buffer{}
	form := multipart.NewWriter(body)
	file, err := form.CreateFormFile("file", cmp.Or(m.Name, "audio."+path.Base(m.MIME))) // the endpoint reads the format from the name
	if err != nil {
		return nil, "", err
	}
	if _, err := file.Write(m.Data); err != nil {
		return nil, "", err
	}
	for name, value := range map[string]string{"model": t.model, "response_format": "json"} {
		if err := form.WriteField(name, value); err != nil {
			return nil, "", err
		}
	}
	return body, form.FormDataContentType(), form.Close()
}
