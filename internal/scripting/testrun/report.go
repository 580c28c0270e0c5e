package testrun

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report collects outcomes.
type Report struct {
	Outcomes []Outcome
}

// Failed returns the number of tests that failed.
func (r *Report) Failed() (n int) {
	for _, o := range r.Outcomes {
		if o.Failure != nil {
			n++
		}
	}
	return n
}

// Text is an outcome for people: a line if the test passed, otherwise also why it failed
// and what it printed.
func (o Outcome) Text(verbose bool) string {
	var out strings.Builder
	word := "ok  "
	if o.Failure != nil {
		word = "FAIL"
	}
	fmt.Fprintf(&out, "%s %s %s (%s)\n", word, o.place(), o.Name, o.Duration.Round(time.Millisecond))
	if o.Failure != nil {
		fmt.Fprintf(&out, "     %s: %s\n", o.Place(), indented(o.Failure.Message))
		if details := o.Failure.Details; details != "" && details != o.Failure.Message {
			fmt.Fprintf(&out, "     %s\n", indented(details))
		}
	}
	if o.Failure != nil || verbose {
		for _, line := range o.Output {
			fmt.Fprintf(&out, "     | %s\n", line)
		}
	}
	return out.String()
}

// place is where the test is defined.
func (o Outcome) place() string { return fmt.Sprintf("%s:%d", o.File.Path, o.Line) }

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n     ") }

// Summary is one line about all outcomes.
func (r *Report) Summary() string {
	failed := r.Failed()
	return fmt.Sprintf("%d passed, %d failed", len(r.Outcomes)-failed, failed)
}

// The parts of a JUnit report that CI systems read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Tests   int          `xml:"tests,attr"`
		Failed  int          `xml:"failures,attr"`
		Seconds string       `xml:"time,attr"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name    string      `xml:"name,attr"`
		Tests   int         `xml:"tests,attr"`
		Failed  int         `xml:"failures,attr"`
		Errors  int         `xml:"errors,attr"`
		Seconds string      `xml:"time,attr"`
		Cases   []junitCase `xml:"testcase"`

		took time.Duration
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML, with one suite per file.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Tests: len(r.Outcomes), Failed: r.Failed()}
	var total time.Duration
	for _, o := range r.Outcomes {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != o.File.Path {
			all.Suites = append(all.Suites, junitSuite{Name: o.File.Path})
		}
		all.Suites[len(all.Suites)-1].add(o)
		total += o.Duration
	}
	all.Seconds = seconds(total)
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func (s *junitSuite) add(o Outcome) {
	c := junitCase{Class: o.File.Path, Name: o.Name, File: o.File.Path, Line: o.Line, Seconds: seconds(o.Duration), Output: strings.Join(o.Output, "\n")}
	if o.Failure != nil {
		s.Failed++
		c.Failure = &junitFailure{Message: o.Place() + ": " + o.Failure.Message, Text: o.Failure.Details}
	}
	s.Tests++
	s.took += o.Duration
	s.Seconds = seconds(s.took)
	s.Cases = append(s.Cases, c)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
