function value = replace_empty(value)
% REPLACE_EMPTY  Replace null, which jsondecode returns as [], by NaN in a struct or struct array.

    names = fieldnames(value);
    for element = 1:numel(value)
        for k = 1:numel(names)
            field = value(element).(names{k});
            if isstruct(field)
                value(element).(names{k}) = replace_empty(field);
            elseif isnumeric(field) && isempty(field)
                value(element).(names{k}) = NaN;
            end
        end
    end
end
