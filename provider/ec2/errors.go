package ec2

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold/leasehold/provider"
)

// Codes of EC2's errors that the provider acts upon.
const (
	codeMismatch     = "IdempotentParameterMismatch"
	codeNoAddress    = "InsufficientFreeAddressesInSubnet"
	codeNotFound     = "InvalidInstanceID.NotFound"
	codeWrongState   = "IncorrectInstanceState"
	codeUnsupported  = "Unsupported"
	codeNoOperation  = "UnsupportedOperation"
	codeAuthFailure  = "AuthFailure"
	codeUnauthorized = "UnauthorizedOperation"
)

var (
	throttles = []string{
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException", "EC2ThrottledException", "BandwidthLimitExceeded",
	}
	refused = []string{
		codeAuthFailure, codeUnauthorized, "InvalidClientTokenId", "ExpiredToken", "ExpiredTokenException",
		"SignatureDoesNotMatch", "RequestExpired", "UnrecognizedClientException", "AccessDenied", "AccessDeniedException",
		"IncompleteSignature", "MissingAuthenticationToken", "InvalidAccessKeyId", "OptInRequired", "Blocked",
		"PendingVerification", "NotAuthorized",
	}
	full = []string{
		"InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity", "InsufficientAddressCapacity",
		"InsufficientReservedInstanceCapacity", "InsufficientVolumeCapacity", "SpotMaxPriceTooLow", codeNoAddress,
	}
	quotas = []string{"MaxSpotInstanceCountExceeded", "ResourceLimitExceeded", "InstanceCreditSpecification.LimitExceeded"}
	// wrong are codes of a wrong request that do not begin with Invalid.
	wrong = []string{
		"MissingParameter", "UnknownParameter", codeUnsupported, "VPCIdNotSpecified", "OperationNotPermitted",
		"NotExportable", "EncryptedVolumesNotSupported", "UnsupportedInstanceAttribute",
	}
)

// codeOf is the code of an error that EC2 has answered, or "".
func codeOf(err error) string {
	var told smithy.APIError
	if errors.As(err, &told) {
		return told.ErrorCode()
	}
	return ""
}

// call sends one request through the gate and gives an error its kind.
func (p *Provider) call(ctx context.Context, scope string, request func(context.Context) error) error {
	if err := p.gate.pass(ctx); err != nil {
		return err
	}
	err := request(ctx)
	if err == nil {
		p.gate.answered()
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return p.meaning(err, scope)
}

// told is an error of EC2's with its kind, and its code still to be found.
type told struct {
	kind  *provider.Error
	cause error
}

func (t told) Error() string   { return t.kind.Error() }
func (t told) Unwrap() []error { return []error{t.kind, t.cause} }

// meaning gives an error of EC2's its kind (PROV-5). The scope is what the request was about.
func (p *Provider) meaning(err error, scope string) error {
	code := codeOf(err)
	if code == "" {
		return err // no answer, or one that nobody can read: temporary; or an error of the credentials' source
	}
	e := &provider.Error{Scope: scope, Message: textOf(err)}
	switch {
	case slices.Contains(throttles, code):
		e.Kind, e.After = provider.Throttled, p.gate.throttled()
	case code == codeAuthFailure && strings.Contains(e.Message, "Not authorized for images"):
		e.Kind = provider.Invalid // of the template, not of the account
	case slices.Contains(refused, code):
		e.Kind, e.Scope = provider.Credentials, "region "+p.region
	case code == codeNotFound:
		e.Kind = provider.NotFound
	case slices.Contains(full, code):
		e.Kind = provider.Capacity
	case slices.Contains(quotas, code), strings.HasSuffix(code, "LimitExceeded"), strings.HasSuffix(code, "QuotaExceeded"):
		e.Kind, e.Scope = provider.Quota, "account in "+p.region
	case slices.Contains(wrong, code), strings.HasPrefix(code, "Invalid"):
		e.Kind = provider.Invalid
	default:
		return err
	}
	return told{e, err}
}

// textOf is an error as EC2 says it.
func textOf(err error) string {
	var answer smithy.APIError
	errors.As(err, &answer)
	return answer.ErrorCode() + ": " + answer.ErrorMessage()
}

// tries is how often a request that only reads is sent before its failure is believed.
const tries = 3

// read sends a request that changes nothing. It waits out throttles, and repeats what fails otherwise
// a few times.
func (p *Provider) read(ctx context.Context, scope string, request func(context.Context) error) error {
	for failed := 0; ; {
		err := p.call(ctx, scope, request)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var pause time.Duration
		switch kind := provider.KindOf(err); {
		case kind == provider.Throttled:
			after, _ := provider.RetryAfter(err)
			if end, is := ctx.Deadline(); is && time.Until(end) <= after {
				return err
			}
			pause = after
		case kind == provider.Temporary && failed < tries-1:
			failed++
			pause = time.Duration(failed) * p.poll / 2
		default:
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}
