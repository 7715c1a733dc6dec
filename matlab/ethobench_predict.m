function ethobench_predict(model, recordings, folder, varargin)
% ETHOBENCH_PREDICT  Annotate recordings with a trained model.
%
%   ethobench_predict(model, recordings, folder) writes one annotation file
%   per recording into folder. model is the folder of a model that
%   `ethobench train` wrote; recordings is a file, a folder, or a cell array
%   of files.
%
%   ethobench_predict(..., 'rate', 30, 'to', 'boris') sets options of the
%   command; `ethobench predict --help` lists them.
%
%   Example
%       ethobench_predict('models/first', {'monday1.csv', 'monday2.csv'}, 'annotations', 'rate', 30)
%
%   See also ETHOBENCH_SCORE, ETHOBENCH_BUDGET

    if ischar(recordings)
        recordings = {recordings};
    end
    output = run_ethobench([{'predict', model}, recordings(:)', {'--out', folder}, command_options(varargin)]);
    if nargout == 0
        fprintf('%s', output);
    end
end
