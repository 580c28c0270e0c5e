package catalog

import (
	"context"
	"fmt"
	"strings"
)

// ExposureProblems lists the names in the exposure of a namespace that no tool has,
// with suggestions. While the tools are not known there are no problems.
func (c *Catalog) ExposureProblems(ctx context.Context, namespace string) []string {
	v := c.refresh(ctx)
	c.mu.Lock()
	exposure := c.exposure[namespace]
	c.mu.Unlock()
	s := v.namespaces[namespace]
	if s == nil || len(s.tools) == 0 || exposure.All {
		return nil
	}
	var problems []string
	for _, name := range exposure.Names {
		if s.find(name) == nil {
			problems = append(problems, fmt.Sprintf("expose: it has no tool %q%s", name, didYouMean(similar(name, s.names(), mostSuggestions))))
		}
	}
	return problems
}

// didYouMean is a question with suggestions that follows other text.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(names, " or "))
}
