// Package reason renders the reasons that records hold as fields. The planner decides and sets the
// fields, and everything that shows them calls this package: the command line, a page, a webhook.
// No other package builds or takes apart these sentences.
//
// A record that a release without kinds wrote is shown by the text that it holds.
package reason
