package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// api is what is used of the SDK's client. The client itself must not be a field of anything that
// becomes an interface: the linker would then keep its seven hundred other methods, and the program
// would be twice as large.
type api struct {
	RunInstances       operation[ec2.RunInstancesInput, ec2.RunInstancesOutput]
	DescribeInstances  operation[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	DescribeSubnets    operation[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
	DescribeImages     operation[ec2.DescribeImagesInput, ec2.DescribeImagesOutput]
	StopInstances      operation[ec2.StopInstancesInput, ec2.StopInstancesOutput]
	StartInstances     operation[ec2.StartInstancesInput, ec2.StartInstancesOutput]
	RebootInstances    operation[ec2.RebootInstancesInput, ec2.RebootInstancesOutput]
	TerminateInstances operation[ec2.TerminateInstancesInput, ec2.TerminateInstancesOutput]
	GetConsoleOutput   operation[ec2.GetConsoleOutputInput, ec2.GetConsoleOutputOutput]
}

type operation[In, Out any] = func(context.Context, *In, ...func(*ec2.Options)) (*Out, error)

func apiOf(c *ec2.Client) api {
	return api{
		RunInstances: c.RunInstances, DescribeInstances: c.DescribeInstances, DescribeSubnets: c.DescribeSubnets,
		DescribeImages: c.DescribeImages, StopInstances: c.StopInstances, StartInstances: c.StartInstances,
		RebootInstances: c.RebootInstances, TerminateInstances: c.TerminateInstances, GetConsoleOutput: c.GetConsoleOutput,
	}
}
