function scores = ethobench_score(pred, truth, varargin)
% ETHOBENCH_SCORE  Score annotation files against reference annotations.
%
%   scores = ethobench_score(pred, truth) scores a file or folder of
%   predictions against a file or folder of reference annotations, in any
%   format that ethobench reads. scores.overall and scores.behaviors.(name)
%   have the metrics, scores.intervals their confidence intervals,
%   scores.recordings the scores of each recording. Undefined values are NaN.
%
%   scores = ethobench_score(..., 'suite', 'banos', 'rate', 30) sets options
%   of the command; `ethobench score --help` lists them. An option without
%   a value, such as --merge-subjects, takes true.
%
%   Example
%       scores = ethobench_score('model.csv', 'human.boris', 'suite', 'banos');
%       disp(scores.overall.f1_score)
%
%   See also BANOS_SCORE, ETHOBENCH_PREDICT, ETHOBENCH_BUDGET

    output = run_ethobench([{'score', pred, truth, '--json'}, command_options(varargin)]);
    scores = replace_empty(jsondecode(output));
end
