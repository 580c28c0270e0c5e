package search

import (
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// repository has tools as a large API has them: many titles share most of their words.
func repository() []tool.Info {
	info := func(name, title string, readOnly bool, required string) tool.Info {
		return tool.Info{
			Ref: tool.Ref{Space: "git", Name: name}, Title: title, Description: title + ".", Hints: tool.Hints{ReadOnly: readOnly},
			Input: []byte(`{"type":"object","required":[` + required + `]}`),
		}
	}
	old := info("pulls_list_old", "List pull requests", true, `"owner"`)
	old.Description = "Deprecated. " + old.Description
	return []tool.Info{
		old,
		info("repos_list_pull_requests_for_commit", "List pull requests associated with a commit", true, `"owner","repo","sha"`),
		info("orgs_list_pulls", "List pull requests", true, `"org","owner","repo"`),
		info("pulls_list", "List pull requests", true, `"owner","repo"`),
		info("pulls_create", "Create a pull request", false, `"owner","repo"`),
		info("pulls_create_comment", "Create a comment on a pull request", false, `"owner","repo"`),
		info("branches_list", "List branches", true, `"owner"`),
		info("branches_merge", "Merge branches", false, `"owner"`),
		info("labels_list", "List labels for an issue", true, `"owner"`),
		info("labels_add", "Add labels to an issue", false, `"owner"`),
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	tools := repository()
	x := NewIndex(tools, Context{})
	for query, want := range map[string]string{
		"list pull requests":      "git.pulls_list",
		"List all pull requests":  "git.pulls_list",
		"create pull request":     "git.pulls_create",
		"open a pull request":     "git.pulls_create",
		"branches":                "git.branches_list",
		"labels of an issue":      "git.labels_list",
		"add a label to an issue": "git.labels_add",
	} {
		if got := found(Run(Query{Texts: []string{query}}, []Part{{Tools: tools, Index: x}})); got[0] != want {
			t.Errorf("%s: found %v, want %s first", query, got, want)
		}
	}
	got := found(Run(Query{Texts: []string{"list pull requests"}, Limit: 4}, []Part{{Tools: tools, Index: x}}))
	if got[1] != "git.orgs_list_pulls" || got[3] != "git.pulls_list_old" && got[2] != "git.pulls_list_old" {
		t.Errorf("found %v: what needs more, and what is deprecated, comes later", got)
	}
}
