package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// openAIContent is the content of a message: null, a text, or parts.
type openAIContent struct {
	null  bool
	text  string
	media []Media
}

// openAIPart is a part of a content, in the formats of the real API.
type openAIPart struct {
	Type  string
	Text  string
	Image struct{ URL string }          `json:"image_url"`
	Audio struct{ Data, Format string } `json:"input_audio"`
	File  struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// UnmarshalJSON refuses what the real API would refuse.
func (c *openAIContent) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		c.null = true
		return nil
	}
	if json.Unmarshal(raw, &c.text) == nil {
		return nil
	}
	var parts []openAIPart
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for i, p := range parts {
		media, err := p.media()
		if err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
		c.text += p.Text
		c.media = append(c.media, media...)
	}
	return nil
}

func (p openAIPart) media() ([]Media, error) {
	switch p.Type {
	case "text":
		return nil, nil
	case "image_url":
		return fromDataURL(p.Type, p.Image.URL, "image/")
	case "file":
		if p.File.Name == "" {
			return nil, fmt.Errorf("file.filename is required")
		}
		return fromDataURL(p.Type, p.File.Data, "application/pdf")
	case "input_audio":
		data, err := base64.StdEncoding.DecodeString(p.Audio.Data)
		if p.Audio.Format != "wav" && p.Audio.Format != "mp3" {
			err = fmt.Errorf("input_audio.format %q is not wav or mp3", p.Audio.Format)
		}
		return []Media{{Kind: p.Type, MIME: p.Audio.Format, Data: data}}, err
	default:
		return nil, fmt.Errorf("there is no type %q", p.Type)
	}
}

// fromDataURL reads data:TYPE;base64,DATA.
func fromDataURL(kind, url, prefix string) ([]Media, error) {
	head, data, found := strings.Cut(url, ";base64,")
	mime, isData := strings.CutPrefix(head, "data:")
	decoded, err := base64.StdEncoding.DecodeString(data)
	if !found || !isData || !strings.HasPrefix(mime, prefix) || err != nil || len(decoded) == 0 {
		return nil, fmt.Errorf("%s: not a data URL of %s", kind, prefix)
	}
	return []Media{{Kind: kind, MIME: mime, Data: decoded}}, nil
}
