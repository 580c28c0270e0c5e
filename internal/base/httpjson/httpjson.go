// Package httpjson reads and writes the JSON bodies of our own HTTP endpoints. Errors
// have one form, and unknown fields in a request are refused by name. Bodies that a
// standard defines are read with encoding/json, which ignores unknown fields.
package httpjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
)

// Read decodes the JSON body of a request into the value that into points to, as Decode does.
func Read(r *http.Request, into any) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "read the request")
	}
	return Decode(text, into)
}

// Decode parses text into the value that into points to. An error is an invalid_params
// fault that names the field.
func Decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		var known *fault.Error
		if errors.As(err, &known) {
			return err
		}
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) && other.Field != "" {
			return fault.New(fault.InvalidParams, "%v", rawjson.InWords(err))
		}
		return fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "Invalid JSON body").WithHint("send %s", wanted(reflect.TypeOf(into)))
	}
	return check(text, reflect.TypeOf(into), "")
}

// wanted describes the expected type.
func wanted(t reflect.Type) string {
	t = bare(t)
	switch t.Kind() {
	case reflect.Struct:
		return "a JSON object with " + strings.Join(names(t), ", ")
	case reflect.Slice:
		return "a JSON array, each item " + strings.TrimPrefix(wanted(t.Elem()), "a ")
	default:
		return "a JSON object"
	}
}

// check looks for fields in text that type t does not have; path is the position of
// the text.
func check(text []byte, t reflect.Type, path string) error {
	t = bare(t)
	switch t.Kind() {
	case reflect.Struct:
		return checkFields(text, t, path)
	case reflect.Slice, reflect.Array:
		for i, item := range parts[[]json.RawMessage](text) {
			if err := check(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for name, item := range parts[map[string]json.RawMessage](text) {
			if err := check(item, t.Elem(), join(path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts returns the elements of an array or object. A value that its type decodes
// itself, in another form, has none.
func parts[P any](text []byte) (p P) {
	if json.Unmarshal(text, &p) != nil {
		var none P
		return none
	}
	return p
}

func checkFields(text []byte, t reflect.Type, path string) error {
	known := fields(t)
	if len(known) == 0 {
		return nil
	}
	items := parts[map[string]json.RawMessage](text)
	for _, name := range slices.Sorted(maps.Keys(items)) {
		field, ok := known[strings.ToLower(name)]
		if !ok {
			return unknown(join(path, name), name, names(t))
		}
		if err := check(items[name], field, join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// unknown returns the error for an unknown field.
func unknown(path, name string, known []string) error {
	f := fault.New(fault.InvalidParams, "unknown field %q", path)
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		return f.WithHint("did you mean %q?", near[0])
	}
	return f.WithHint("the fields are: %s", strings.Join(known, ", "))
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// bare returns a type without pointers.
func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// fields returns the JSON fields of a struct by their names in lower case, as
// encoding/json compares them.
func fields(t reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for name, kind := range walk(t) {
		found[strings.ToLower(name)] = kind
	}
	return found
}

// names returns the names of the fields as they are written, sorted.
func names(t reflect.Type) (list []string) {
	for name := range walk(t) {
		list = append(list, name)
	}
	return list
}

// walk iterates over the fields of a struct, including those of embedded structs.
func walk(t reflect.Type) func(yield func(string, reflect.Type) bool) {
	return func(yield func(string, reflect.Type) bool) {
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch inner := bare(field.Type); {
			case field.Anonymous && name == "" && inner.Kind() == reflect.Struct:
				for name, kind := range walk(inner) {
					if !yield(name, kind) {
						return
					}
				}
			case !field.IsExported() || name == "-":
			case name == "":
				name = field.Name
				fallthrough
			default:
				if !yield(name, field.Type) {
					return
				}
			}
		}
	}
}

// JSON writes a response with a JSON body.
func JSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // people copy links from here
	_ = encoder.Encode(body)     // the client may have disconnected
}

// Error writes an error response with the message, the code, the hint and the
// details.
func Error(w http.ResponseWriter, status int, err error) {
	body := map[string]any{"error": http.StatusText(status), "code": string(fault.CodeOf(err)), "message": err.Error()}
	if hint := fault.HintOf(err); hint != "" {
		body["hint"] = hint
	}
	var f *fault.Error
	if errors.As(err, &f) && len(f.Details) > 0 {
		body["details"] = f.Details
	}
	JSON(w, status, body)
}

// statuses are the HTTP statuses of error codes; others are 500.
var statuses = map[fault.Code]int{
	fault.InvalidParams: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Denied: http.StatusForbidden, fault.Config: http.StatusConflict, fault.NeedsAuth: http.StatusUnauthorized, fault.Unavailable: http.StatusServiceUnavailable,
	fault.Limit: http.StatusTooManyRequests, fault.Upstream: http.StatusBadGateway, fault.Timeout: http.StatusGatewayTimeout,
	fault.ToolNotFound: http.StatusNotFound, fault.Cancelled: http.StatusServiceUnavailable,
}

// StatusOf returns the HTTP status of an error.
func StatusOf(err error) int {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge
	}
	if status, ok := statuses[fault.CodeOf(err)]; ok {
		return status
	}
	return http.StatusInternalServerError
}
