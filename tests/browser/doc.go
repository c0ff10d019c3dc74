// Package browser gives tests a real Chromium without a window, and what they look for in every page: errors
// on the console, refusals by the content security policy, and violations of the rules for accessible pages
// (axe-core 4.14.1, unchanged from npm, in axe/ with its licence).
//
// scripts/test-needs.sh installs Chromium.
package browser
