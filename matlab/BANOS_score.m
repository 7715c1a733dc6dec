function [metrics, overall] = BANOS_score(data, varargin)
% BANOS_SCORE  BANOS metrics, computed by ethobench.
%
%   metrics = BANOS_score(pred, truth) scores one recording. pred and truth
%   are cell arrays: the first row has the names of the behaviors, each
%   further row is a frame with values of 0 or 1. metrics.(behavior) has the
%   fields precision, recall, f1_score, so, tp and ic.
%
%   [metrics, overall] = BANOS_score(recordings) scores several recordings.
%   recordings is a struct; each field is the name of a recording, and its
%   value is {pred, truth}. metrics has the means over recordings by
%   behavior, overall the means over behaviors and recordings.
%
%   ... = BANOS_score(..., 'matching', 'greedy') is accepted for
%   compatibility. 'optimal' returns the same scores, because bouts of one
%   behavior do not overlap.
%
%   As in the BANOS toolbox, NaN counts as 0, columns with other values than
%   0 and 1 are dropped (with a warning here), and only behaviors of both
%   annotations are scored. Undefined scores are NaN.
%
%   Example
%       pred  = [{'attack', 'mount'}; num2cell([0 0; 1 0; 1 0; 0 1])];
%       truth = [{'attack', 'mount'}; num2cell([0 0; 1 0; 0 1; 0 1])];
%       metrics = BANOS_score(pred, truth);
%       disp(metrics.attack.so)
%
%   See also ETHOBENCH_SCORE, ETHOBENCH_PREDICT, ETHOBENCH_BUDGET

    [truth, varargin] = split_options(varargin);
    check_options(varargin);
    single = iscell(data);
    if single
        if ~iscell(truth)
            error('ethobench:usage', 'Pass the truth too: BANOS_score(pred, truth)');
        end
        data = struct('recording', {{data, truth}});
    elseif ~isstruct(data)
        error('ethobench:usage', 'Pass two cell arrays, or a struct with {pred, truth} for each recording');
    end

    folder = tempname();
    mkdir(folder);
    remove = onCleanup(@() remove_folder(folder));
    mkdir(fullfile(folder, 'pred'));
    mkdir(fullfile(folder, 'truth'));
    names = fieldnames(data);
    for k = 1:numel(names)
        pair = data.(names{k});
        [pred_names, pred] = binary_columns(pair{1}, [names{k} ', prediction']);
        [truth_names, truth] = binary_columns(pair{2}, [names{k} ', truth']);
        if size(pred, 1) ~= size(truth, 1)
            error('ethobench:length', '%s: the prediction has %d frames, the truth %d', names{k}, size(pred, 1), size(truth, 1));
        end
        shared = pred_names(ismember(pred_names, truth_names));
        if isempty(shared)
            error('ethobench:behaviors', '%s: the prediction and the truth have no behavior in common', names{k});
        end
        [~, pred_columns] = ismember(shared, pred_names);
        [~, truth_columns] = ismember(shared, truth_names);
        write_frames(fullfile(folder, 'pred', [names{k} '.csv']), shared, pred(:, pred_columns));
        write_frames(fullfile(folder, 'truth', [names{k} '.csv']), shared, truth(:, truth_columns));
    end

    scores = ethobench_score(fullfile(folder, 'pred'), fullfile(folder, 'truth'), 'suite', 'banos', 'behaviors', 'all', 'rate', 1);
    metrics = scores.behaviors;
    overall = scores.overall;
end

function [truth, options] = split_options(args)
    truth = [];
    options = args;
    if ~isempty(args) && iscell(args{1})
        truth = args{1};
        options = args(2:end);
    end
end

function check_options(options)
    if isempty(options)
        return
    end
    known = numel(options) == 2 && ischar(options{1}) && strcmpi(options{1}, 'matching');
    if ~known || ~any(strcmpi(options{2}, {'greedy', 'optimal'}))
        error('ethobench:usage', 'The only option is ''matching'', with the value ''greedy'' or ''optimal''');
    end
end

function [names, values] = binary_columns(table, source)
% Separate names and values; NaN becomes 0, columns that are not binary are dropped.
    names = table(1, :);
    cells = table(2:end, :);
    values = reshape(double([cells{:}]), size(cells));
    values(isnan(values)) = 0;
    binary = all(values == 0 | values == 1, 1);
    if ~all(binary)
        warning('ethobench:dropped', '%s: dropped columns with other values than 0 and 1: %s', source, strjoin(names(~binary), ', '));
    end
    names = names(binary);
    values = values(:, binary);
end

function remove_folder(folder)
    if exist('OCTAVE_VERSION', 'builtin')
        confirm_recursive_rmdir(false, 'local');
    end
    if exist(folder, 'dir')
        rmdir(folder, 's');
    end
end
