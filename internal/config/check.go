package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/jobs/webhook"
)

// The tags of a field that checkValues reads.
const (
	minTag    = "min"    // least value of a number or a duration, without it zero; "any" is none
	maxTag    = "max"    // greatest value of a number
	wordsTag  = "words"  // the values that a text may have, separated by |, or the name of a list in wordLists
	formatTag = "format" // what a text must be, unless it is empty: formatHTTP
)

// formatHTTP is the address of an HTTP server.
const formatHTTP = "http"

// wordLists are lists of words that other packages know.
var wordLists = map[string][]string{
	"menus": builtin.Menus, "outputs": api.Outputs(), "scopes": texts(principal.Scopes), "schemes": texts(webhook.Schemes()),
	"approvals": texts(approval.Modes()), "trust": texts(pin.Modes()), "verdicts": texts(policy.Verdicts()),
}

func texts[T ~string](words []T) (all []string) {
	for _, word := range words {
		all = append(all, string(word))
	}
	return all
}

// check refuses invalid values that the decoder does not detect.
func (c *Config) check() error {
	if err := checkValues(reflect.ValueOf(c).Elem(), ""); err != nil {
		return err
	}
	if err := checkBlobs(c.Blobs); err != nil {
		return err
	}
	for _, check := range []func() error{
		c.Music.check, c.Sandbox.check, c.Backup.check, c.checkPrefixes, c.checkApprovals, c.checkTrust, c.checkPolicy,
		c.Chat.check, c.checkTLS, c.checkIssuers, c.checkPeople, c.checkHooks, c.checkTools, c.checkSets, c.checkUpstreams, c.checkSecrets,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkValues refuses values that the tags of their fields exclude, in a section and those
// below it. Upstreams have their own checks.
func checkValues(section reflect.Value, prefix string) error {
	for field, value := range section.Fields() {
		if keyOf(field) == "" || field.Type == reflect.TypeFor[map[string]Upstream]() {
			continue
		}
		if err := checkValue(value, prefix+keyOf(field), field.Tag); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(v reflect.Value, key string, tag reflect.StructTag) error {
	switch v.Kind() {
	case reflect.Struct:
		return checkValues(v, key+".")
	case reflect.Map:
		for _, name := range slices.SortedFunc(maps.Keys(entriesOf(v)), strings.Compare) {
			if err := checkValue(entriesOf(v)[name], key+"."+name, tag); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			item := key
			if v.Index(i).Kind() == reflect.Struct {
				item = fmt.Sprintf("%s %d", key, i+1)
			}
			if err := checkValue(v.Index(i), item, tag); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		return checkNumber(v, key, tag)
	case reflect.String:
		return checkText(v.String(), key, tag)
	}
	return nil
}

// entriesOf are the entries of a table.
func entriesOf(table reflect.Value) map[string]reflect.Value {
	entries := make(map[string]reflect.Value, table.Len())
	for key, value := range table.Seq2() {
		entries[key.String()] = value
	}
	return entries
}

func checkNumber(v reflect.Value, key string, tag reflect.StructTag) error {
	shown := func(n int64) string { return strconv.FormatInt(n, 10) }
	parse := func(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
	if v.Type() == reflect.TypeFor[Duration]() {
		shown = func(n int64) string { return Duration(n).String() }
		parse = func(text string) int64 { var d Duration; _ = d.UnmarshalText([]byte(text)); return int64(d) }
	}
	least := parse(tag.Get(minTag))
	if v.Int() < least && tag.Get(minTag) != "any" {
		return fault.New(fault.Config, "%s: %s is too small", key, shown(v.Int())).WithHint("use %s or more, or omit it", shown(least))
	}
	if most := tag.Get(maxTag); most != "" && v.Int() > parse(most) {
		return fault.New(fault.Config, "%s: %s is too large", key, shown(v.Int())).WithHint("use %s or less, or omit it", most)
	}
	return nil
}

func checkText(text, key string, tag reflect.StructTag) error {
	if words := choicesOf(tag); words != nil && !slices.Contains(words, text) {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
		last := len(words) - 1
		return fault.New(fault.Config, "%s: %q is not a choice", key, text).WithHint("use %s or %s", strings.Join(words[:last], ", "), words[last])
	}
	if tag.Get(formatTag) == formatHTTP && text != "" && !isHTTP(text) {
		return fault.New(fault.Config, "%s: %q is no http address", key, text).WithHint("give one such as http://127.0.0.1:2000")
	}
	return nil
}

// choicesOf are the values that a text may have; nil if it may be any.
func choicesOf(tag reflect.StructTag) []string {
	list, limited := tag.Lookup(wordsTag)
	if !limited {
		return nil
	}
	list, optional := strings.CutPrefix(list, "|")
	words, named := wordLists[list]
	if !named {
		words = strings.Split(list, "|")
	}
	if optional {
		return append([]string{""}, words...)
	}
	return slices.Clone(words)
}

func isHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
