package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// parameter is one parameter of an operation.
type parameter struct {
	name     string
	argument string // its name among the tool's arguments
	in       string // path, query, header, cookie, querystring; of Swagger also body and formData
	required bool
	style    style
	content  string // media type, if the value is sent encoded so
	schema   node

	description string
	deprecated  bool
	fallback    string // the default, as it is written in a query
}

// style is how values of lists and objects are written.
type style struct {
	name          string
	explode       bool
	allowReserved bool
}

// parameters lists the parameters of an operation: its own, and those of its path that it
// does not replace.
func (r *reader) parameters(op *operation) (all []*parameter, err error) {
	for _, place := range []node{op.raw, op.item} {
		raw, _ := rawjson.Get(place.raw, "parameters")
		items, _ := rawjson.Items(raw)
		for _, item := range items {
			n, err := r.docs.follow(node{place.doc, item})
			if err != nil {
				return nil, fmt.Errorf("parameter: %w", err)
			}
			p := r.parameter(n)
			if schema, err := r.docs.follow(p.schema); err == nil {
				value, _ := rawjson.Get(schema.raw, "default")
				p.fallback = scalar(value)
			}
			if p.name != "" && !slices.ContainsFunc(all, func(other *parameter) bool { return other.in == p.in && other.name == p.name }) {
				all = append(all, p)
			}
		}
	}
	for _, name := range placeholders(op.path) { // documents forget some
		if !slices.ContainsFunc(all, func(p *parameter) bool { return p.in == "path" && p.name == name }) {
			all = append(all, &parameter{name: name, in: "path", required: true, style: style{name: "simple"}, schema: node{op.raw.doc, json.RawMessage(`{"type":"string"}`)}})
		}
	}
	return all, nil
}

// placeholders are the names in braces of a path.
func placeholders(path string) (names []string) {
	for _, part := range strings.Split(path, "{")[1:] {
		if name, _, ok := strings.Cut(part, "}"); ok && name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (r *reader) parameter(n node) *parameter {
	p := &parameter{required: rawjson.GetBool(n.raw, "required"), deprecated: rawjson.GetBool(n.raw, "deprecated")}
	p.name, _ = rawjson.GetText(n.raw, "name")
	p.in, _ = rawjson.GetText(n.raw, "in")
	p.description, _ = rawjson.GetText(n.raw, "description")
	p.required = p.required || p.in == "path"
	if r.swagger {
		p.schema, p.style = r.swaggerParameter(n, p.in)
		return p
	}
	if content, ok := rawjson.Get(n.raw, "content"); ok {
		rawjson.Each(content, func(media string, raw json.RawMessage) bool {
			p.content = media
			schema, _ := rawjson.Get(raw, "schema")
			p.schema = node{n.doc, schema}
			return false
		})
		return p
	}
	schema, _ := rawjson.Get(n.raw, "schema")
	p.schema = node{n.doc, schema}
	p.style = readStyle(n.raw, p.in)
	return p
}

// readStyle reads style, explode and allowReserved of a parameter or of a property's
// encoding.
func readStyle(raw json.RawMessage, in string) style {
	s := style{allowReserved: rawjson.GetBool(raw, "allowReserved")}
	s.name, _ = rawjson.GetText(raw, "style")
	fallback := "simple"
	if in == "query" || in == "cookie" {
		fallback = "form"
	}
	s.name = cmp.Or(s.name, fallback)
	explode, ok := rawjson.Get(raw, "explode")
	s.explode = ok && string(explode) == "true" || !ok && (s.name == "form" || s.name == "cookie")
	return s
}

// swaggerParameter reads the schema of a Swagger parameter, which is the parameter itself,
// and its style.
func (r *reader) swaggerParameter(n node, in string) (node, style) {
	if in == "body" {
		schema, _ := rawjson.Get(n.raw, "schema")
		return node{n.doc, schema}, style{}
	}
	schema := rawjson.DeleteFunc(n.raw, func(key []byte) bool {
		return slices.Contains([]string{"name", "in", "description", "required", "collectionFormat", "allowEmptyValue"}, string(key))
	})
	format, _ := rawjson.GetText(n.raw, "collectionFormat")
	s := style{name: "simple"}
	if in == "query" || in == "formData" {
		s.name = "form"
	}
	switch format {
	case "ssv":
		s.name = "spaceDelimited"
	case "tsv":
		s.name = "tabDelimited"
	case "pipes":
		s.name = "pipeDelimited"
	case "multi":
		s.explode = true
	}
	return node{n.doc, schema}, s
}

// argument is an argument of a tool that is no parameter of the operation.
type argument struct {
	name   string
	schema string
}

// maxArgument is the length of an argument's name; models take no longer ones.
const maxArgument = 64

// Arguments that stand for other things than parameters.
const (
	argBody        = "body"
	argContentType = "content_type"
)

// nameArguments names the arguments. Parameters of the same name in several places get
// their place as a suffix, and so do those that would be taken for something else.
func nameArguments(op *operation) {
	count := map[string]int{argBody: 1, argContentType: 1, api.PageToken: 1}
	if op.body == nil {
		delete(count, argBody)
		delete(count, argContentType)
	}
	for _, p := range op.params {
		p.argument = argumentName(p.name)
		count[p.argument]++
	}
	for _, p := range op.params {
		if count[p.argument] > 1 {
			p.argument += "__" + p.in
		}
	}
}

// argumentName keeps what models accept in the name of an argument.
func argumentName(name string) string {
	if clean := cleanName(name); clean != "" {
		return clean[:min(len(clean), maxArgument)]
	}
	return "value"
}

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
	delimiter = cmp.Or(delimiter, ",")
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
