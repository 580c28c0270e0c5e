package openapi

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// pair is a name and a value of a query or a form, not escaped.
type pair struct {
	name, value string
	reserved    bool // reserved characters in the value stay as they are
}

// scalar is a value as it is written in URLs: texts without quotes, nothing for null.
func scalar(raw json.RawMessage) string {
	if text, ok := rawjson.Text(raw); ok {
		return text
	}
	if rawjson.IsNull(raw) {
		return ""
	}
	return string(raw)
}

// delimiters between the items of a list that is one value.
var delimiters = map[string]string{"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}

// pairs writes a value as parameters of a query or fields of a form.
func (s style) pairs(name string, value json.RawMessage) (list []pair) {
	if rawjson.IsNull(value) {
		return nil
	}
	add := func(name, text string) { list = append(list, pair{name, text, s.allowReserved}) }
	delimiter := delimiters[s.name]
	if delimiter == "" {
		delimiter = ","
	}
	items, isList := rawjson.Items(value)
	switch {
	case s.name == "deepObject":
		deepPairs(name, value, add)
	case isList && s.explode:
		for _, item := range items {
			add(name, scalar(item))
		}
	case isList:
		add(name, joinItems(items, delimiter))
	case rawjson.IsObject(value) && s.explode:
		rawjson.Each(value, func(key string, item json.RawMessage) bool { add(key, scalar(item)); return true })
	case rawjson.IsObject(value):
		add(name, joinMembers(value, delimiter, delimiter))
	default:
		add(name, scalar(value))
	}
	return list
}

// deepPairs writes an object as name[key]=value, and what is deeper in the same way.
func deepPairs(name string, value json.RawMessage, add func(name, text string)) {
	items, isList := rawjson.Items(value)
	switch {
	case isList:
		for i, item := range items {
			if rawjson.IsObject(item) {
				deepPairs(name+"["+strconv.Itoa(i)+"]", item, add)
			} else {
				add(name+"[]", scalar(item))
			}
		}
	case rawjson.IsObject(value):
		rawjson.Each(value, func(key string, item json.RawMessage) bool {
			deepPairs(name+"["+key+"]", item, add)
			return true
		})
	default:
		add(name, scalar(value))
	}
}

func joinItems(items []json.RawMessage, delimiter string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = scalar(item)
	}
	return strings.Join(texts, delimiter)
}

// joinMembers writes an object as key, assign, value, and so on.
func joinMembers(object json.RawMessage, assign, delimiter string) string {
	var texts []string
	rawjson.Each(object, func(key string, item json.RawMessage) bool {
		texts = append(texts, key+assign+scalar(item))
		return true
	})
	return strings.Join(texts, delimiter)
}

// inPath writes a value into a path, escaped.
func (s style) inPath(name string, value json.RawMessage) string {
	escape := url.PathEscape
	if s.allowReserved {
		escape = func(text string) string { return strings.ReplaceAll(url.PathEscape(text), "%2F", "/") }
	}
	items, isList := rawjson.Items(value)
	switch {
	case s.name == "label":
		return "." + s.pathValue(value, items, isList, ".", escape)
	case s.name == "matrix" && isList && s.explode:
		var out strings.Builder
		for _, item := range items {
			out.WriteString(";" + name + "=" + escape(scalar(item)))
		}
		return out.String()
	case s.name == "matrix" && rawjson.IsObject(value) && s.explode:
		return ";" + s.pathValue(value, items, isList, ";", escape)
	case s.name == "matrix":
		return ";" + name + "=" + s.pathValue(value, items, isList, ",", escape)
	}
	return s.pathValue(value, items, isList, ",", escape)
}

// pathValue writes a value with a delimiter between its parts, which are escaped one by
// one. Only exploded values use a delimiter other than a comma.
func (s style) pathValue(value json.RawMessage, items []json.RawMessage, isList bool, delimiter string, escape func(string) string) string {
	if !s.explode {
		delimiter = ","
	}
	switch {
	case isList:
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = escape(scalar(item))
		}
		return strings.Join(texts, delimiter)
	case rawjson.IsObject(value):
		assign := ","
		if s.explode {
			assign = "="
		}
		var texts []string
		rawjson.Each(value, func(key string, item json.RawMessage) bool {
			texts = append(texts, escape(key)+assign+escape(scalar(item)))
			return true
		})
		return strings.Join(texts, delimiter)
	}
	return escape(scalar(value))
}

// inHeader writes a value of a header or cookie.
func (s style) inHeader(value json.RawMessage) string {
	if items, ok := rawjson.Items(value); ok {
		return joinItems(items, ",")
	}
	if rawjson.IsObject(value) {
		if s.explode {
			return joinMembers(value, "=", ",")
		}
		return joinMembers(value, ",", ",")
	}
	return scalar(value)
}

// encodePairs writes a query or a form.
func encodePairs(list []pair) string {
	var out strings.Builder
	for i, p := range list {
		if i > 0 {
			out.WriteByte('&')
		}
		out.WriteString(url.QueryEscape(p.name))
		out.WriteByte('=')
		if p.reserved {
			out.WriteString(escapeUnreserved(p.value))
		} else {
			out.WriteString(url.QueryEscape(p.value))
		}
	}
	return out.String()
}

// escapeUnreserved escapes what must be escaped even where reserved characters are
// allowed.
func escapeUnreserved(text string) string {
	const reserved = ":/?@!$'()*,;"
	var out strings.Builder
	for _, r := range text {
		if strings.ContainsRune(reserved, r) {
			out.WriteRune(r)
		} else {
			out.WriteString(url.QueryEscape(string(r)))
		}
	}
	return out.String()
}
