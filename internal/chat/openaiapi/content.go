package openaiapi

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/chat/llm"
)

// content is the content of a message: a string, or a list of parts.
type content struct {
	text  string
	media []llm.Media
}

// part is one part of a content.
type part struct {
	Type, Text, Refusal string
	Image               struct{ URL string }          `json:"image_url"`
	Audio               struct{ Data, Format string } `json:"input_audio"`
	File                struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// UnmarshalJSON reads both forms.
func (c *content) UnmarshalJSON(raw []byte) error {
	if text, ok := rawjson.Text(raw); ok {
		c.text = text
		return nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return bad("messages", "the content of a message must be text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" || p.Type == "refusal" {
			texts = append(texts, p.Text+p.Refusal)
			continue
		}
		media, err := p.media()
		if err != nil {
			return err
		}
		c.media = append(c.media, media)
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// media returns an image, a sound or a file. It is part of the request: this server
// fetches nothing that a client names.
func (p part) media() (m llm.Media, err error) {
	switch p.Type {
	case "image_url":
		m, err = fromDataURL(p.Image.URL)
	case "file":
		m, err = fromDataURL(p.File.Data)
		m.Name = p.File.Name
	case "input_audio":
		m.MIME = map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"}[p.Audio.Format]
		m.Data, err = base64.StdEncoding.DecodeString(p.Audio.Data)
	default:
		return m, bad("messages", "content of the type %q is not supported, only text, image_url, input_audio and file", p.Type)
	}
	if err != nil || len(m.Data) == 0 || m.MIME == "" {
		return m, bad("messages", "the content of a part of the type %s must be in the request, in base64 (data:TYPE;base64,… in image_url and file_data)", p.Type)
	}
	return m, nil
}

func fromDataURL(url string) (llm.Media, error) {
	head, data, _ := strings.Cut(url, ",")
	kind, isData := strings.CutPrefix(head, "data:")
	kind, inBase64 := strings.CutSuffix(kind, ";base64")
	if !isData || !inBase64 {
		return llm.Media{}, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	return llm.Media{MIME: kind, Data: decoded}, err
}

// blocks returns no block for an empty text, which providers refuse.
func (c content) blocks() (blocks []llm.Block) {
	if strings.TrimSpace(c.text) != "" {
		blocks = append(blocks, llm.Block{Text: c.text})
	}
	for i := range c.media {
		blocks = append(blocks, llm.Block{Media: &c.media[i]})
	}
	return blocks
}

// image is an image of a tool's result in an answer. OpenAI's format has no place for it;
// this is the one that clients know from other servers.
type image struct {
	Type  string   `json:"type"`
	Index int      `json:"index"`
	URL   imageURL `json:"image_url"`
}

type imageURL struct {
	URL string `json:"url"`
}

// imageOf returns an image of a tool's result for the client, or false for other media.
func imageOf(m llm.Media, index int) (image, bool) {
	if m.Kind() != llm.Image {
		return image{}, false
	}
	return image{"image_url", index, imageURL{"data:" + m.MIME + ";base64," + base64.StdEncoding.EncodeToString(m.Data)}}, true
}
