function output = run_ethobench(args)
% RUN_ETHOBENCH  Run the ethobench command and return what it prints.
%
%   output = run_ethobench(args) runs `ethobench` with a cell array of
%   arguments. The command is taken from the environment variable
%   ETHOBENCH_COMMAND, or else from the PATH. Messages on standard error
%   are part of the error if the command fails, and warnings otherwise.

    command = getenv('ETHOBENCH_COMMAND');
    if isempty(command)
        command = 'ethobench';
    end
    messages = [tempname() '.txt'];
    remove = onCleanup(@() delete_if_present(messages));
    words = cellfun(@quote, [{command}, args], 'UniformOutput', false);
    [status, output] = system([strjoin(words, ' ') ' 2> ' quote(messages)]);
    notes = '';
    if exist(messages, 'file')
        notes = strtrim(fileread(messages));
    end
    if status ~= 0
        if isempty(notes) || status == 127 || status == 9009  % the shell did not find the command
            notes = sprintf(['%s could not be run; install it with `pip install ethobench`, ' ...
                            'or set the environment variable ETHOBENCH_COMMAND'], command);
        end
        error('ethobench:failed', '%s', notes);
    elseif ~isempty(notes)
        warning('ethobench:note', '%s', notes);
    end
end

function word = quote(word)
% Quote one argument for the shell of this system.
    if ispc()
        if any(word == '"') || any(word == '%')
            error('ethobench:name', 'A name must not contain " or %% on Windows: %s', word);
        end
        word = ['"' word '"'];
    else
        word = ['''' strrep(word, '''', '''\''''') ''''];
    end
end

function delete_if_present(file)
    if exist(file, 'file')
        delete(file);
    end
end
