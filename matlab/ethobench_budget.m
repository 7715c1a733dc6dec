function budget = ethobench_budget(path, varargin)
% ETHOBENCH_BUDGET  Compute time budgets of annotation files or of a study.
%
%   budget = ethobench_budget(path) returns what `ethobench budget --json`
%   prints: a struct array with one element per recording, subject and
%   behavior, and the fields bouts, seconds, share of the observed time,
%   mean and median duration, and latency. Undefined values are NaN.
%
%   budget = ethobench_budget(path, 'per', 'individual') sets options of the
%   command; `ethobench budget --help` lists them.
%
%   Example
%       budget = ethobench_budget('my_study');
%       disp(struct2table(budget))      % MATLAB
%
%   See also ETHOBENCH_SCORE, ETHOBENCH_PREDICT

    output = run_ethobench([{'budget', path, '--json'}, command_options(varargin)]);
    budget = replace_empty(jsondecode(output));
end
