package backend

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Result is the output of a tool that has more than a text or data.
type Result struct {
	// Text is for people and models.
	Text string
	// Data is for programs: anything that encodes to JSON; nil means none.
	Data any
	// Attachments are images, sounds and other files.
	Attachments []Attachment
}

// Attachment is a file: its bytes, its text, or only where it is.
type Attachment struct {
	Name     string
	MimeType string
	Data     []byte
	Text     string
	URI      string
}

// Error is why a tool failed.
type Error struct {
	// Code is for programs: invalid_params, not_found, unavailable … or one of your own;
	// docs/backends.md lists the usual ones.
	Code    string
	Message string
	// Hint says what to do about it; it may be empty.
	Hint string
	// Details are data of any form; nil means none.
	Details any
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf returns an error with a code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// faultOf converts an error of a tool.
func faultOf(err error) error {
	var own *Error
	if !errors.As(err, &own) {
		return err
	}
	f := fault.New(fault.Code(own.Code), "%s", own.Message)
	if own.Hint != "" {
		f = f.WithHint("%s", own.Hint)
	}
	if own.Details != nil {
		f = f.WithDetails(own.Details)
	}
	return f
}

// resultOf converts the output of a tool.
func resultOf(out any) (tool.Result, error) {
	switch out := out.(type) {
	case string:
		return tool.Output(out, nil)
	case Result:
		return out.encode()
	case interface{ Text() string }:
		return tool.Output(out.Text(), out)
	}
	raw, err := tool.Encode(out)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Output(string(raw), raw)
}

func (r Result) encode() (tool.Result, error) {
	result, err := tool.Output(r.Text, r.Data)
	if err != nil || len(r.Attachments) == 0 {
		return result, err
	}
	view, err := result.View()
	if err != nil {
		return result, err
	}
	for _, a := range r.Attachments {
		block, err := tool.Encode(a.block())
		if err != nil {
			return result, err
		}
		view.Content = append(view.Content, block)
	}
	result.Raw, err = tool.Encode(view)
	return result, err
}

// block is the attachment as a content block, which hootserver converts.
func (a Attachment) block() map[string]any {
	meta := map[string]string{"luanette/name": a.Name}
	kind, _, _ := strings.Cut(a.MimeType, "/")
	data := base64.StdEncoding.EncodeToString(a.Data)
	switch {
	case len(a.Data) > 0 && (kind == "image" || kind == "audio"):
		return map[string]any{"type": kind, "mimeType": a.MimeType, "data": data, "_meta": meta}
	case len(a.Data) == 0 && a.Text == "" && a.URI != "":
		return map[string]any{"type": "resource_link", "uri": a.URI, "name": a.Name, "mimeType": a.MimeType}
	}
	resource := map[string]any{"uri": a.URI, "mimeType": a.MimeType, "_meta": meta}
	if len(a.Data) > 0 {
		resource["blob"] = data
	} else {
		resource["text"] = a.Text
	}
	return map[string]any{"type": "resource", "resource": resource}
}
