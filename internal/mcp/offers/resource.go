package offers

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// resource finds whose resource a URI names: the upstream that lists it, alone or in a skill, that
// has linked to it in a result for this caller, whose template alone matches, or that alone has its scheme.
func (o *Offers) resource(ctx context.Context, uri string) (target, error) {
	listed, err := o.known(ctx, wire.MethodResourcesList)
	if err != nil {
		return target{}, err
	}
	templates, err := o.Entries(ctx, wire.MethodResourceTemplates)
	if err != nil {
		return target{}, err
	}
	if i := slices.IndexFunc(listed, func(e Entry) bool { return e.Shown == uri }); i >= 0 {
		return o.entryAt(ctx, listed[i])
	}
	if t, ok := o.ofSkill(ctx, uri); ok {
		return t, nil
	}
	if t, ok := o.named(ctx, uri); ok {
		return t, nil
	}
	if t, ok := o.linked(ctx, uri); ok {
		return t, nil
	}
	matching := withTemplate(uri, templates)
	if len(matching) == 0 {
		matching = withScheme(uri, slices.Concat(listed, templates))
	}
	if t, ok := o.onlyOne(ctx, matching, uri); ok {
		return t, nil
	}
	return target{}, unknown(principal.Of(ctx), uri, matching, listed)
}

// named is the target of a URI that has the name of an upstream in front.
func (o *Offers) named(ctx context.Context, uri string) (target, bool) {
	space, id, ok := unqualified(uri)
	if !ok {
		return target{}, false
	}
	t, ok := o.at(ctx, o.namespace(ctx, space), id)
	return t, ok && t.space != ""
}

// linked is the target of a URI that an upstream has linked to in a result for this caller.
func (o *Offers) linked(ctx context.Context, uri string) (target, bool) {
	space, ok := o.Links.find(principal.Of(ctx), uri)
	if !ok {
		return target{}, false
	}
	return o.at(ctx, space, uri)
}

// onlyOne is the target of a URI that one upstream alone may have, or we.
func (o *Offers) onlyOne(ctx context.Context, spaces []string, uri string) (target, bool) {
	isClear := len(spaces) == 1 || len(spaces) > 1 && spaces[0] == "" // our own come first
	if !isClear {
		return target{}, false
	}
	return o.at(ctx, spaces[0], uri)
}

func unknown(who principal.Principal, uri string, matching []string, listed []Entry) error {
	err := fault.New(fault.NotFound, "no resource %q", uri)
	if len(matching) > 1 {
		forms := make([]string, len(matching))
		for i, space := range matching {
			forms[i] = Qualified(who.NameOf(space), uri)
		}
		return err.WithHint("several servers may have it: read one of %s", strings.Join(forms, ", "))
	}
	known := make([]string, len(listed))
	for i := range listed {
		known[i] = listed[i].Shown
	}
	return err.WithHint("%s", didYouMean(uri, known))
}

// template finds a resource template by itself, or what a URI names.
func (o *Offers) template(ctx context.Context, uri string) (target, error) {
	templates, err := o.Entries(ctx, wire.MethodResourceTemplates)
	if err != nil {
		return target{}, err
	}
	if i := slices.IndexFunc(templates, func(e Entry) bool { return e.Shown == uri }); i >= 0 {
		return o.entryAt(ctx, templates[i])
	}
	return o.resource(ctx, uri)
}

// withTemplate are the upstreams that have a template which a URI matches, as it is listed here: of
// two servers with the same one, the second has its name in it.
func withTemplate(uri string, templates []Entry) (spaces []string) {
	for _, e := range templates {
		if matches(e.Shown, uri) && !slices.Contains(spaces, e.Namespace) {
			spaces = append(spaces, e.Namespace)
		}
	}
	return spaces
}

// withScheme are the upstreams that have resources with the scheme of a URI. Schemes that any
// server may use say nothing.
func withScheme(uri string, entries []Entry) (spaces []string) {
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok || slices.Contains([]string{"http", "https", "file", "data", "ui", "skill"}, scheme) {
		return nil
	}
	for _, e := range entries {
		if its, _, _ := strings.Cut(e.ID, ":"); its == scheme && e.Namespace != "" && !slices.Contains(spaces, e.Namespace) {
			spaces = append(spaces, e.Namespace)
		}
	}
	return spaces
}

// expression is a part of a URI template (RFC 6570) in braces.
var expression = regexp.MustCompile(`\{([+#./;?&]?)[^{}]*\}`)

// matches reports whether a URI may be made of a template.
func matches(template, uri string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	rest := template
	for _, at := range expression.FindAllStringSubmatchIndex(template, -1) {
		done := len(template) - len(rest)
		pattern.WriteString(regexp.QuoteMeta(template[done:at[0]]))
		switch operator := template[at[2]:at[3]]; operator {
		case "+", "#":
			pattern.WriteString(`.*`)
		case "?", "&", ";":
			pattern.WriteString(`([?&;].*)?`)
		case "/":
			pattern.WriteString(`(/[^/?#]*)*`)
		default:
			pattern.WriteString(`[^/?#]+`)
		}
		rest = template[at[1]:]
	}
	pattern.WriteString(regexp.QuoteMeta(rest) + "$")
	compiled, err := regexp.Compile(pattern.String())
	return err == nil && compiled.MatchString(uri)
}
