package guard

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Violation is an error about something that no agent does. Its text never contains what a client
// sent.
type Violation string

func (v Violation) Error() string { return string(v) }

// Violations of a client.
const (
	FrequentHellos       = Violation("it says hello too often")
	SecondHello          = Violation("it says hello twice")
	SequenceNotRising    = Violation("its reports are not numbered upwards")
	HeartbeatOfNoReport  = Violation("its heartbeat refers to a report that it has not sent")
	Flood                = Violation("it sends more than an agent can, and goes on")
	FrequentRenewals     = Violation("it asks for certificates without pause")
	ExcessiveReport      = Violation("a report has more of something than an agent has")
	MessageTooLong       = Violation("a message is too long")
	MessageTooManyFields = Violation("a message has too many parts")
	MessageMalformed     = Violation("a message cannot be read")
)

// CountFields returns an error if a message, with all messages inside it, has more than
// protocol.MaxParts fields. It runs before decoding: a message of 256 KiB can hold a hundred
// thousand empty fields, which decode to a hundred times that memory.
func CountFields(data []byte, as protoreflect.MessageDescriptor) error {
	_, err := countFields(data, as, protocol.MaxParts)
	return err
}

// countFields returns how many fields are still allowed after this message.
func countFields(data []byte, as protoreflect.MessageDescriptor, left int) (int, error) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return left, errors.Join(MessageMalformed, protowire.ParseError(n))
		}
		if left--; left < 0 {
			return left, MessageTooManyFields
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return left, errors.Join(MessageMalformed, protowire.ParseError(n))
		}
		if field := as.Fields().ByNumber(number); field != nil && field.Message() != nil &&
			kind == protowire.BytesType {
			part, _ := protowire.ConsumeBytes(data)
			var err error
			if left, err = countFields(part, field.Message(), left); err != nil {
				return left, err
			}
		}
		data = data[n:]
	}
	return left, nil
}

// CheckReport returns an error if some part of a report is far larger than an agent can make it.
// What exceeds its bound by less is cut to the bound when the report is stored.
func CheckReport(r *protocol.Report) error {
	for _, count := range []struct {
		of      string
		n, most int
	}{
		{"checks", len(r.GetChecks()), protocol.MaxChecks},
		{"files", len(r.GetFiles()), protocol.MaxFiles},
		{"files_roots", len(r.GetFilesRoots()), protocol.MaxRoots},
		{"windows", len(r.GetHost().GetWindows()), protocol.MaxWindows},
		{"bytes of output", len(r.GetWorkloadExit().GetOutput()), protocol.MaxOutput},
		{"bytes in why", len(r.GetWhy()), protocol.MaxText},
		{"bytes in the notice's why", len(r.GetNotice().GetWhy()), protocol.MaxText},
		{"bytes in the notice's kind", len(r.GetNotice().GetKind()), protocol.MaxName},
		{"bytes in config_hash", len(r.GetConfigHash()), protocol.MaxName},
		{"bytes in restarted", len(r.GetRestarted()), protocol.MaxName},
		{"bytes in drained", len(r.GetDrained()), protocol.MaxName},
		{"bytes in upgrade.token", len(r.GetUpgrade().GetToken()), protocol.MaxName},
		{"bytes in upgrade.version", len(r.GetUpgrade().GetVersion()), protocol.MaxName},
		{"bytes in upgrade.result", len(r.GetUpgrade().GetResult()), protocol.MaxName},
		{"bytes in upgrade.why", len(r.GetUpgrade().GetWhy()), protocol.MaxText},
		{"bytes in trust", len(r.GetTrust()), protocol.MaxName},
		{"bytes in certificate.issuer", len(r.GetCertificate().GetIssuer()), protocol.MaxName},
		{"bytes in workload_exit.signal", len(r.GetWorkloadExit().GetSignal()), protocol.MaxName},
	} {
		if count.n > protocol.Leeway*count.most {
			return fmt.Errorf("%w: %d %s", ExcessiveReport, count.n, count.of)
		}
	}
	for _, f := range r.GetFiles() {
		if max(len(f.GetPath()), len(f.GetWhy())) > protocol.Leeway*protocol.MaxText ||
			max(len(f.GetState()), len(f.GetVersion())) > protocol.Leeway*protocol.MaxName {
			return fmt.Errorf("%w: the state of a file is too long", ExcessiveReport)
		}
	}
	for _, dir := range r.GetFilesRoots() {
		if len(dir) > protocol.Leeway*protocol.MaxPath {
			return fmt.Errorf("%w: %d bytes in one of files_roots", ExcessiveReport, len(dir))
		}
	}
	for _, c := range r.GetChecks() {
		switch {
		case max(len(c.GetName()), len(c.GetKind())) > protocol.Leeway*protocol.MaxName:
			return fmt.Errorf("%w: a check's name or kind is too long", ExcessiveReport)
		case len(c.GetWhy()) > protocol.Leeway*protocol.MaxText:
			return fmt.Errorf("%w: %d bytes in a check's why", ExcessiveReport, len(c.GetWhy()))
		}
	}
	return nil
}
