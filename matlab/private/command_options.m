function args = command_options(pairs)
% COMMAND_OPTIONS  Turn name-value pairs into options of the command line.

    if mod(numel(pairs), 2) ~= 0
        error('ethobench:usage', 'Options are pairs of a name and a value');
    end
    args = {};
    for k = 1:2:numel(pairs)
        name = ['--' strrep(pairs{k}, '_', '-')];
        value = pairs{k + 1};
        if islogical(value) && isscalar(value)
            if value
                args = [args, {name}]; %#ok<AGROW>
            end
        elseif isnumeric(value) && isscalar(value)
            args = [args, {name, sprintf('%.15g', value)}]; %#ok<AGROW>
        elseif ischar(value)
            args = [args, {name, value}]; %#ok<AGROW>
        else
            error('ethobench:usage', 'The value of option %s must be a text, a number, or true', pairs{k});
        end
    end
end
