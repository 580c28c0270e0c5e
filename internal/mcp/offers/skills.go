package offers

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/skills"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// ofSkill is the target of a URI in the folder of a skill, by its name here or, if one server
// alone has it, by that at its server. The folder of a server is its own: no other server can
// have a skill there.
func (o *Offers) ofSkill(ctx context.Context, uri string) (target, bool) {
	list, err := o.Entries(ctx, wire.MethodSkillsList)
	if err != nil {
		return target{}, false
	}
	var there []string
	for _, e := range list {
		if skills.Contains(e.Shown, uri) {
			return o.at(ctx, e.Namespace, skills.MovedURI(uri, e.Shown, e.ID))
		}
		if skills.Contains(e.ID, uri) && !slices.Contains(there, e.Namespace) {
			there = append(there, e.Namespace)
		}
	}
	if t, ok := o.named(ctx, uri); ok || len(there) != 1 {
		return t, ok
	}
	return o.at(ctx, there[0], uri)
}

// skill answers skills/get. A server that cannot be reached has the skill that it listed last.
func (o *Offers) skill(ctx context.Context, uri string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	list, err := o.Entries(ctx, wire.MethodSkillsList)
	if err != nil {
		return nil, err
	}
	t, ok := o.named(ctx, uri) // also one that its server does not list
	i := slices.IndexFunc(list, func(e Entry) bool { return e.Shown == uri })
	if i < 0 && !ok {
		i = onlyWithID(list, uri)
	}
	switch {
	case i >= 0 && list[i].Namespace == "":
		return rawjson.Set(nil, "skill", list[i].Raw), nil
	case i >= 0:
		uri = list[i].Shown
		t, ok = o.at(ctx, list[i].Namespace, list[i].ID)
	}
	if !ok {
		return nil, wire.Errorf(wire.CodeInvalidParams, "no skill %q", uri)
	}
	result, err := t.peer.Request(ctx, wire.MethodSkillsGet, rawjson.SetText(params, "uri", t.id), caller)
	if err != nil {
		if i >= 0 && fault.CodeOf(err) == fault.Unavailable {
			return rawjson.Set(nil, "skill", list[i].Raw), nil
		}
		return nil, err
	}
	entry, _ := rawjson.Get(result, "skill")
	return rawjson.Set(result, "skill", skills.Moved(entry, uri)), nil
}

// onlyWithID finds the only entry with a URI at its server; -1 if there are none or several.
func onlyWithID(list []Entry, id string) int {
	found := -1
	for i := range list {
		if list[i].ID == id {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// folder answers resources/directory/read, from what is known of the skills.
func (o *Offers) folder(ctx context.Context, uri string) (json.RawMessage, error) {
	list, err := o.List(ctx, wire.MethodSkillsList)
	if err != nil {
		return nil, err
	}
	if result, ok := skills.Folder(list, uri); ok {
		return result, nil
	}
	return nil, wire.Errorf(wire.CodeInvalidParams, "%q is no folder of a skill", uri)
}
