package catalog

import (
	"context"
	"fmt"
	"strings"
)

// ExposureProblems tells which names of a namespace's exposure no tool has, each with
// what may have been meant. As long as the tools are not known, nothing is wrong.
func (c *Catalog) ExposureProblems(ctx context.Context, namespace string) []string {
	v := c.refresh(ctx)
	c.mu.Lock()
	exposure := c.exposure[namespace]
	c.mu.Unlock()
	s := v.namespaces[namespace]
	if s == nil || len(s.tools) == 0 || exposure.All {
		return nil
	}
	var mistaken []string
	for _, name := range exposure.Names {
		if s.find(name) == nil {
			mistaken = append(mistaken, fmt.Sprintf("expose: it has no tool %q%s", name, didYouMean(similar(name, s.names(), mostSuggestions))))
		}
	}
	return mistaken
}

// didYouMean words suggestions as a question.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(names, " or "))
}
