package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/skills"
)

// checkSkill says why a skill is not offered.
func (s *Spec) checkSkill(entry json.RawMessage) error {
	if skills.IsDynamic(entry) && !s.DynamicSkills {
		return errors.New("its files cannot be checked; the setting dynamic_skills admits it")
	}
	_, err := skills.Read(entry)
	return err
}

// getSkill asks for one skill, which replaces the one that is known.
func (c *connection) getSkill(ctx context.Context, r *outcall) (json.RawMessage, error) {
	result, err := c.request(ctx, r, true)
	if err != nil {
		return nil, err
	}
	entry, _ := rawjson.Get(result, "skill")
	if err := c.spec.Load().checkSkill(entry); err != nil {
		return nil, fault.New(fault.Upstream, "the skill cannot be used: %v", err)
	}
	if now, differs := c.known.learnSkill(entry); differs {
		c.saveCache()
		c.publishOffering(&now)
	}
	return result, nil
}

// learnSkill keeps a skill as the server has it now, and tells whether it is another.
func (k *known) learnSkill(entry json.RawMessage) (now offering, differs bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	uri, _ := rawjson.GetText(entry, "uri")
	all := slices.Clone(k.offering.Skills)
	i := slices.IndexFunc(all, func(e json.RawMessage) bool { its, _ := rawjson.GetText(e, "uri"); return its == uri })
	switch {
	case i >= 0 && sameJSON(all[i], entry), i < 0 && len(all) >= maxOffered:
		return k.offering, false
	case i >= 0:
		all[i] = slices.Clone(entry)
	default:
		all = append(all, slices.Clone(entry))
	}
	k.offering.Skills = all
	return k.offering, true
}

// checkSkillFile refuses a file of a skill that is not what the server has listed. If the server
// has changed the skill, it is listed anew.
func (c *connection) checkSkillFile(uri string, result json.RawMessage) error {
	for _, entry := range c.known.offered().Skills {
		main, _ := rawjson.GetText(entry, "uri")
		if !skills.Contains(main, uri) {
			continue
		}
		skill, err := skills.Read(entry)
		if err != nil {
			continue // it is not offered, and its files are resources like others
		}
		if err := skill.CheckRead(uri, result); err != nil {
			signal(c.offeringChanged)
			return err
		}
	}
	return nil
}
