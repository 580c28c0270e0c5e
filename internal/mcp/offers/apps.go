package offers

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Menu lists tools under exposed names and calls them.
type Menu interface {
	tool.Source
	InputSchema(ctx context.Context, name string) (json.RawMessage, bool)
}

// Apps is a menu for clients that show MCP Apps, and for all others as it is: the pages of tools
// have the URIs by which they are read here, and pages call the tools of their server by the
// names that these have there.
type Apps struct {
	Menu
	Catalog *catalog.Catalog
	Offers  *Offers
	Own     OwnApps
}

// OwnApps are the Apps of our own.
type OwnApps interface {
	// Source has the tools that only their pages call.
	tool.Source
	// Grant adds to the result of a tool what its page needs to act, if it has a page of ours.
	Grant(ctx context.Context, name string, result tool.Result) tool.Result
}

// Tools lists the tools. Pages must not call ours, which reach all others.
func (a Apps) Tools(ctx context.Context) ([]tool.Info, error) {
	list, err := a.Menu.Tools(ctx)
	if err != nil || !tool.ShowsApps(ctx) {
		return list, err
	}
	pages, err := a.Offers.known(ctx, wire.MethodResourcesList)
	if err != nil {
		return nil, err
	}
	refs, err := a.Catalog.Exposed().Refs(ctx)
	list = slices.Clone(list)
	for i := range list {
		info := &list[i]
		switch ref, known := refs[info.Name]; {
		case known && ref.Space == "" && info.App.Page == "":
			info.Raw = apps.ForModels(info.Raw)
		case known && ref.Space == "":
		case info.App.Page != "":
			info.Raw = apps.WithPage(info.Raw, shownPage(pages, ref.Space, info.App.Page))
		}
	}
	ours, failed := a.Own.Tools(ctx)
	return append(list, ours...), errors.Join(err, failed)
}

// shownPage is the URI of a tool's page here; "" if the caller may not read it.
func shownPage(known []Entry, space, uri string) string {
	i := slices.IndexFunc(known, func(e Entry) bool { return e.Namespace == space && e.ID == uri })
	if i < 0 {
		return ""
	}
	return known[i].Shown
}

// Call runs a tool by any of its names here. Hosts pass on the calls of pages as these write
// them: such a name is of a tool of the only server with it of which the caller has read a page.
func (a Apps) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if !tool.ShowsApps(ctx) {
		return a.Menu.Call(ctx, call)
	}
	ours, err := a.Own.Tools(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if slices.ContainsFunc(ours, func(info tool.Info) bool { return info.Name == call.Ref.Name }) {
		return a.Own.Call(ctx, call)
	}
	if call, err = a.resolve(ctx, call); err != nil {
		return tool.Result{}, err
	}
	result, err := a.Menu.Call(ctx, call)
	if err == nil {
		result = a.Own.Grant(ctx, call.Ref.Name, result)
	}
	return result, err
}

// resolve finds the tool that a page means.
func (a Apps) resolve(ctx context.Context, call tool.Call) (tool.Call, error) {
	if _, err := a.Catalog.Resolve(ctx, call.Ref.Name); err == nil {
		return call, nil
	}
	spaces := a.ofPages(ctx, call.Ref.Name)
	if len(spaces) > 1 {
		return call, severalServers(principal.Of(ctx), spaces, call.Ref.Name)
	}
	if len(spaces) == 1 {
		call.Ref.Name = principal.Of(ctx).NameOf(spaces[0]) + "." + call.Ref.Name
	}
	return call, nil
}

// ofPages are the servers whose pages may have called a tool by its own name. Where it is not
// known that the caller has read any page, as after a restart, all servers count.
func (a Apps) ofPages(ctx context.Context, name string) (spaces []string) {
	all, who := a.Offers.namespaces(ctx), principal.Of(ctx)
	isRead := func(space string) bool { return a.Offers.Links.hasPage(who, space) }
	anyRead := slices.ContainsFunc(all, isRead)
	for _, space := range all {
		if anyRead && !isRead(space) {
			continue
		}
		info, ok := a.Catalog.Find(ctx, tool.Ref{Space: who.NameOf(space), Name: name})
		if ok && info.Raw != nil && !apps.Of(info.Raw).Closed && (anyRead || a.hasApp(ctx, space)) {
			spaces = append(spaces, space)
		}
	}
	return spaces
}

// hasApp tells whether a server has a tool with a page.
func (a Apps) hasApp(ctx context.Context, space string) bool {
	return slices.ContainsFunc(a.Offers.pages(ctx), func(p Page) bool { return p.Namespace == space })
}

func severalServers(who principal.Principal, spaces []string, name string) error {
	forms := make([]string, len(spaces))
	for i, space := range spaces {
		forms[i] = catalog.ExposedName(who.NameOf(space), name, false)
	}
	return fault.New(fault.ToolNotFound, "several servers whose pages were read have a tool %q", name).
		WithHint("call one of %s", strings.Join(forms, ", "))
}
