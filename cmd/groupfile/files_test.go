package groupfile

import (
	"strings"
	"testing"
)

// An error in a template has the line and the column in the file where it is.
//
// proves FILE-1
func TestTemplatesAreRefusedWhereTheyAreWrong(t *testing.T) {
	const head = "name: web\nsize: 2\nprovider: process\nvars: {greeting: hello}\nfiles:\n- path: /etc/app/a\n"
	for text, want := range map[string]string{
		"  template: |\n    first\n    {{.Vars.greting}}\n": "there is no .Vars.greting, " +
			"there is greeting: must be a template that can be rendered (FILE-1) (f:9:12)",
		"  template: |\n\n    first\n    {{if .Vars.greeting}}\n": "unexpected EOF",
		"  template: |\n    {{range .Peers}}\n      {{.Zoen}}\n    {{end}}\n": "can't evaluate field Zoen in type " +
			"filetemplate.Peer: must be a template that can be rendered (FILE-1) (f:9:9)",
		"  template: \"{{.Facts.nothing}}\"\n": "(f:7:13)",
		"  template: a {{.Facts.nothing}}\n":   "(f:7:23)",
		"  template: \"{{range .Peers}}" + strings.Repeat("x", 40<<10) + "{{end}}{{range .Peers}}" + strings.Repeat("y",
			20<<10) + "{{end}}\"\n  settle: 5s\n": "",
		"  template: \"{{range .Peers}}" + strings.Repeat("x",
			1000) + "{{end}}\"\n- path: /etc/app/b\n  template: \"a{{range .Peers}}{{range $.Peers}}{{range $.Peers}}" +
			strings.Repeat("x", 60000) + "{{end}}{{end}}{{end}}\"\n": "the file becomes larger than 256 KiB: " +
			"must be a template that can be rendered (FILE-1) (f:",
		"  text: a\n  template: b\n": "files[0]: several of them: " +
			"must be exactly one of text, template, secret and certificate (FILE-1) (f:6:3)",
		"  text: " + strings.Repeat("x", 64<<10+1) + "\n": "files: 65537 bytes of text and templates: " +
			"must be at most 64 KiB (FILE-1) (f:6:1)",
		"  text: a\n  mode: 0644\n":           `files[0].mode: 0644: must be text: write "0644" (f:8:9)`,
		"  text: a\n  on_change: {run: []}\n": "(f:8:14)",
		"  text: a\n  on_chnage: reload\n": "files[0].on_chnage: unknown field: " +
			"did you mean files[0].on_change? (f:8:3)",
		"  secret: a\n- path: /etc/../b\n  text: c\n": "files[1].path: \"/etc/../b\"",
		"  secret: a\n- path: ${dirr}/b\n  text: c\n": "did you mean ${dir}? (f:8:9)",
	} {
		_, err := Read("f", strings.NewReader(head+text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%.60s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%.60s: %v\nwant one line with %s", text, err, want)
		}
	}
}

// Invalid fields of a certificate are refused at their position.
//
// proves FILE-2
func TestCertificatesAreRefusedWhereTheyAreWrong(t *testing.T) {
	const head = "name: web\nprovider: process\nvars: {domain: web.internal}\nfiles:\n- path: " +
		"${dir}/files/tls.crt\n  certificate:\n    authority: web\n"
	const names, key = "    names: [\"{{.Facts.instance}}.{{.Vars.domain}}\", \"{{host .Facts.address}}\"]\n",
		"    key: ${dir}/files/tls.key\n"
	for text, want := range map[string]string{
		names + key: "",
		names + key + "    bundle: ${dir}/files/ca.crt\n    lifetime: 1h\n    key_type: rsa\n    key_mode: \"0640\"\n": "",
		names + "    key: ${dir}/files/tls.crt\n":                   "",
		names + "    key: ${dir}/files/tls.crt\n  mode: \"0644\"\n": "files[0].certificate.key_mode",
		names: "files[0].certificate.key",
		key:   "files[0].certificate.names",
		"    names: [a b]\n" + key: "files[0].certificate.names[0]: \"a b\": must be a template that " +
			"becomes a host name in lower case without wildcard, or an IP address (FILE-2) (f:8:13)",
		"    names: [\"*.web.internal\"]\n" + key: "files[0].certificate.names[0]: \"*.web.internal\"",
		"    names: [web, \"{{.Vars.domian}}\"]\n" + key: "files[0].certificate.names[1]: line 1, column 8: " +
			"there is no .Vars.domian, there is domain",
		"    names: [\"{{range .Peers}}a{{end}}\"]\n" + key: "a certificate has no names of others",
		names + "    key: ${dir}/../tls.key\n":              "files[0].certificate.key: \"${dir}/../tls.key\"",
		names + "    key: ${dirr}/tls.key\n":                "did you mean ${dir}?",
		names + key + "    key_mode: \"0644\"\n": "files[0].certificate.key_mode: \"0644\": " +
			"must be three octal digits of which the last is 0",
		names + key + "    key_type: dsa\n": "files[0].certificate.key_type: \"dsa\"",
		names + key + "    lifetime: 30s\n": "files[0].certificate.lifetime: 30s: must be 1m",
		names + key + "    bundle: ${dir}/files/tls.key\n": "files[0].certificate.bundle: \"${dir}/files/tls.key\": " +
			"must be another path than files[0] has",
		names + key + "    authorty: web\n": "did you mean files[0].certificate.authority",
		names + key + "  on_change: restart\n": "files[0].on_change: \"restart\": must be none, " +
			"reload or {run: [...]} with a certificate: a renewal restarts nothing",
		names + key + "  text: x\n": "several of them",
	} {
		_, err := Read("f", strings.NewReader(head+text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// What is written is read back as it was, each line of it.
func TestFilesAreWrittenAndRead(t *testing.T) {
	const text = "name: web\nprovider: process\nfiles:\n- path: /etc/a\n  text: |2\n      indented\n\n    less \n" +
		"- path: /etc/b\n  template: \"{{len .Peers}}\\t\\n\"\n  on_change: {run: [nginx, -s, reload]}\n- path: " +
		"/etc/c\n  text: \"\"\n- path: /etc/d\n  secret: key\n"
	groups, err := Read("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Write(groups[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read("g", strings.NewReader(string(out)))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a, b := groups[0].InstanceSpec(), again[0].InstanceSpec()
	if a.ConfigHash() != b.ConfigHash() || *a.Files[0].Text != "  indented\n\nless \n" || !strings.Contains(string(out),
		"  text: |") || *a.Files[2].Text != "" ||
		a.Files[3].Mode != "0600" || a.Files[0].Mode != "0644" {
		t.Errorf("%+v\nis written as\n%s", groups[0].Files, out)
	}
}
